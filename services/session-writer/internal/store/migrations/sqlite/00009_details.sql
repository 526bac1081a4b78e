-- +goose Up

-- The trace that a request is part of, '' for none, and the headers of the answer to a call: a JSON array of pairs, '' for none.
ALTER TABLE usage_metrics ADD COLUMN trace_id TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN headers TEXT NOT NULL DEFAULT '';
CREATE INDEX usage_metrics_by_trace ON usage_metrics (trace_id) WHERE trace_id <> '';

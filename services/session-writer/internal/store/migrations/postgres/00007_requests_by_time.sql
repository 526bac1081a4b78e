-- +goose Up

-- Sums of a time, and requests of a session or a client.
CREATE INDEX usage_metrics_by_time ON usage_metrics (created_at);
CREATE INDEX usage_metrics_by_principal ON usage_metrics (principal, id);
CREATE INDEX system_logs_by_request ON system_logs (request_id, id) WHERE request_id <> '';

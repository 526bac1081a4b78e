-- +goose Up

-- The ledger: one row for each upstream call. Request, delivery and ordinal name a call; 'none' is one that was not made after all. "cost_nanos" is in
-- billionths of the currency of the prices, NULL when it is not known. A call that has begun is lost when nobody tells its end before "lost_after".
CREATE TABLE attempts (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id        TEXT NOT NULL CHECK (request_id <> ''),
    delivery          INTEGER NOT NULL,
    ordinal           INTEGER NOT NULL,
    principal         TEXT NOT NULL DEFAULT '',
    endpoint          TEXT NOT NULL,
    model             TEXT NOT NULL,
    provider          TEXT NOT NULL,
    upstream          TEXT NOT NULL,
    upstream_model    TEXT NOT NULL,
    key_index         INTEGER NOT NULL DEFAULT 0,
    outcome           TEXT NOT NULL CHECK (outcome IN ('begun', 'lost', 'success', 'failed', 'cancelled', 'none')),
    reason            TEXT NOT NULL DEFAULT '',
    status            INTEGER NOT NULL DEFAULT 0,
    prompt_tokens     INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    total_tokens      INTEGER NOT NULL DEFAULT 0,
    cached_tokens     INTEGER NOT NULL DEFAULT 0,
    cost_nanos        INTEGER,
    latency_ms        INTEGER NOT NULL DEFAULT 0,
    lost_after        TEXT,
    created_at        TEXT NOT NULL,
    UNIQUE (request_id, delivery, ordinal)
) STRICT;
CREATE INDEX attempts_by_principal ON attempts (principal, created_at);
CREATE INDEX attempts_begun ON attempts (lost_after) WHERE outcome = 'begun';
CREATE INDEX attempts_lost ON attempts (id) WHERE outcome = 'lost';

INSERT INTO attempts (request_id, delivery, ordinal, endpoint, model, provider, upstream, upstream_model, key_index, outcome, reason, status,
    prompt_tokens, completion_tokens, total_tokens, latency_ms, created_at)
SELECT u.request_id, 0, a.key + 1, u.endpoint, u.model, COALESCE(a.value ->> 'provider', ''), COALESCE(a.value ->> 'upstream', ''),
    IIF(a.key + 1 = json_array_length(u.attempts), u.upstream_model, ''), IIF(a.key + 1 = json_array_length(u.attempts), u.key_index, 0),
    IIF(a.value ->> 'outcome' IN ('lost', 'success', 'failed', 'cancelled'), a.value ->> 'outcome', 'failed'),
    COALESCE(a.value ->> 'reason', ''), COALESCE(a.value ->> 'status', 0),
    IIF(a.key + 1 = json_array_length(u.attempts), u.prompt_tokens, 0), IIF(a.key + 1 = json_array_length(u.attempts), u.completion_tokens, 0),
    IIF(a.key + 1 = json_array_length(u.attempts), u.total_tokens, 0), COALESCE(a.value ->> 'duration_ms', 0), u.created_at
FROM usage_metrics u, json_each(u.attempts) a
ORDER BY u.id, a.key;

ALTER TABLE usage_metrics DROP COLUMN attempts;
ALTER TABLE usage_metrics ADD COLUMN principal TEXT NOT NULL DEFAULT '';

ALTER TABLE daily_usage RENAME TO daily_usage_before;
CREATE TABLE daily_usage (
    day               TEXT NOT NULL,
    provider          TEXT NOT NULL,
    model             TEXT NOT NULL,
    principal         TEXT NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    total_tokens      INTEGER NOT NULL,
    cost_nanos        INTEGER,
    request_count     INTEGER NOT NULL,
    error_count       INTEGER NOT NULL,
    PRIMARY KEY (day, provider, model, principal)
) STRICT, WITHOUT ROWID;
INSERT INTO daily_usage
    SELECT day, provider, model, '', prompt_tokens, completion_tokens, total_tokens, NULL, request_count, error_count FROM daily_usage_before;
DROP TABLE daily_usage_before;
CREATE INDEX daily_usage_by_principal ON daily_usage (principal, day);

-- +goose Up

-- The ledger: one row for each upstream call. Request, delivery and ordinal name a call; 'none' is one that was not made after all. "cost_nanos" is in
-- billionths of the currency of the prices, NULL when it is not known. A call that has begun is lost when nobody tells its end before "lost_after".
CREATE TABLE attempts (
    id                BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    request_id        TEXT NOT NULL CHECK (request_id <> ''),
    delivery          BIGINT NOT NULL,
    ordinal           BIGINT NOT NULL,
    principal         TEXT NOT NULL DEFAULT '',
    endpoint          TEXT NOT NULL,
    model             TEXT NOT NULL,
    provider          TEXT NOT NULL,
    upstream          TEXT NOT NULL,
    upstream_model    TEXT NOT NULL,
    key_index         BIGINT NOT NULL DEFAULT 0,
    outcome           TEXT NOT NULL CHECK (outcome IN ('begun', 'lost', 'success', 'failed', 'cancelled', 'none')),
    reason            TEXT NOT NULL DEFAULT '',
    status            BIGINT NOT NULL DEFAULT 0,
    prompt_tokens     BIGINT NOT NULL DEFAULT 0,
    completion_tokens BIGINT NOT NULL DEFAULT 0,
    total_tokens      BIGINT NOT NULL DEFAULT 0,
    cached_tokens     BIGINT NOT NULL DEFAULT 0,
    cost_nanos        BIGINT,
    latency_ms        BIGINT NOT NULL DEFAULT 0,
    lost_after        TIMESTAMPTZ,
    created_at        TIMESTAMPTZ NOT NULL,
    UNIQUE (request_id, delivery, ordinal)
);
CREATE INDEX attempts_by_principal ON attempts (principal, created_at);
CREATE INDEX attempts_begun ON attempts (lost_after) WHERE outcome = 'begun';
CREATE INDEX attempts_lost ON attempts (id) WHERE outcome = 'lost';

INSERT INTO attempts (request_id, delivery, ordinal, endpoint, model, provider, upstream, upstream_model, key_index, outcome, reason, status,
    prompt_tokens, completion_tokens, total_tokens, latency_ms, created_at)
SELECT u.request_id, 0, a.n, u.endpoint, u.model, COALESCE(a.value ->> 'provider', ''), COALESCE(a.value ->> 'upstream', ''),
    CASE WHEN a.n = json_array_length(u.attempts) THEN u.upstream_model ELSE '' END,
    CASE WHEN a.n = json_array_length(u.attempts) THEN u.key_index ELSE 0 END,
    CASE WHEN a.value ->> 'outcome' IN ('lost', 'success', 'failed', 'cancelled') THEN a.value ->> 'outcome' ELSE 'failed' END,
    COALESCE(a.value ->> 'reason', ''), COALESCE((a.value ->> 'status')::BIGINT, 0),
    CASE WHEN a.n = json_array_length(u.attempts) THEN u.prompt_tokens ELSE 0 END,
    CASE WHEN a.n = json_array_length(u.attempts) THEN u.completion_tokens ELSE 0 END,
    CASE WHEN a.n = json_array_length(u.attempts) THEN u.total_tokens ELSE 0 END,
    COALESCE((a.value ->> 'duration_ms')::BIGINT, 0), u.created_at
FROM usage_metrics u CROSS JOIN LATERAL json_array_elements(u.attempts) WITH ORDINALITY AS a (value, n)
ORDER BY u.id, a.n;

ALTER TABLE usage_metrics DROP COLUMN attempts;
ALTER TABLE usage_metrics ADD COLUMN principal TEXT NOT NULL DEFAULT '';

ALTER TABLE daily_usage ADD COLUMN principal TEXT NOT NULL DEFAULT '';
ALTER TABLE daily_usage ADD COLUMN cost_nanos BIGINT;
ALTER TABLE daily_usage DROP CONSTRAINT daily_usage_pkey;
ALTER TABLE daily_usage ADD PRIMARY KEY (day, provider, model, principal);
CREATE INDEX daily_usage_by_principal ON daily_usage (principal, day);

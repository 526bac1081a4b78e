-- +goose Up

CREATE TABLE sessions (
    id                    TEXT PRIMARY KEY,
    project_id            TEXT NOT NULL,
    parent_session_id     TEXT,
    fork_point_message_id TEXT,
    title                 TEXT NOT NULL DEFAULT '',
    created_at            TIMESTAMPTZ NOT NULL,
    updated_at            TIMESTAMPTZ NOT NULL,
    message_count         BIGINT NOT NULL DEFAULT 0,
    last_model            TEXT NOT NULL DEFAULT '',
    last_provider         TEXT NOT NULL DEFAULT '',
    summary_token_count   BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_update ON sessions (updated_at);

CREATE TABLE messages (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    role       TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX messages_by_session ON messages (session_id, id);

CREATE TABLE parts (
    id         TEXT PRIMARY KEY,
    message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    type       TEXT NOT NULL,
    data       JSON NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX parts_by_message ON parts (message_id, id);

CREATE TABLE system_settings (
    key        TEXT PRIMARY KEY,
    value      JSON NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

-- The digest tells a fact that is delivered twice from two facts.
CREATE TABLE system_logs (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest     TEXT NOT NULL UNIQUE,
    level      TEXT NOT NULL,
    category   TEXT NOT NULL,
    message    TEXT NOT NULL CHECK (message <> ''),
    request_id TEXT NOT NULL DEFAULT '',
    metadata   JSON,
    created_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE usage_metrics (
    id                BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    request_id        TEXT NOT NULL UNIQUE CHECK (request_id <> ''),
    session_id        TEXT NOT NULL DEFAULT '',
    endpoint          TEXT NOT NULL,
    model             TEXT NOT NULL,
    provider          TEXT NOT NULL,
    upstream          TEXT NOT NULL DEFAULT '',
    upstream_model    TEXT NOT NULL DEFAULT '',
    key_index         BIGINT NOT NULL DEFAULT 0,
    stream            BOOLEAN NOT NULL DEFAULT FALSE,
    status            TEXT NOT NULL,
    routing_reason    TEXT NOT NULL DEFAULT '',
    prompt_tokens     BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    total_tokens      BIGINT NOT NULL,
    latency_ms        BIGINT NOT NULL,
    first_token_ms    BIGINT NOT NULL DEFAULT 0,
    attempts          JSON NOT NULL DEFAULT '[]',
    created_at        TIMESTAMPTZ NOT NULL
);

CREATE TABLE daily_usage (
    day               DATE NOT NULL,
    provider          TEXT NOT NULL,
    model             TEXT NOT NULL,
    prompt_tokens     BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    total_tokens      BIGINT NOT NULL,
    request_count     BIGINT NOT NULL,
    error_count       BIGINT NOT NULL,
    PRIMARY KEY (day, provider, model)
);

CREATE TABLE provider_health (
    provider    TEXT PRIMARY KEY,
    status      TEXT NOT NULL,
    last_error  TEXT NOT NULL DEFAULT '',
    active_keys BIGINT NOT NULL DEFAULT 0,
    failed_keys BIGINT NOT NULL DEFAULT 0,
    updated_at  TIMESTAMPTZ NOT NULL
);

CREATE TABLE web_content_cache (
    url       TEXT NOT NULL,
    mode      TEXT NOT NULL,
    content   TEXT NOT NULL,
    cached_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (url, mode)
);

CREATE TABLE scraping_metrics (
    id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    url              TEXT NOT NULL,
    query            TEXT NOT NULL DEFAULT '',
    status           TEXT NOT NULL,
    chars_count      BIGINT NOT NULL DEFAULT 0,
    response_summary TEXT NOT NULL DEFAULT '',
    latency_ms       BIGINT NOT NULL DEFAULT 0,
    created_at       TIMESTAMPTZ NOT NULL
);

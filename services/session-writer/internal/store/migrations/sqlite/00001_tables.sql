-- +goose Up

-- Times are UTC text of one width, 2006-01-02T15:04:05.000Z, so that they sort as text.

CREATE TABLE sessions (
    id                    TEXT PRIMARY KEY,
    project_id            TEXT NOT NULL,
    parent_session_id     TEXT,
    fork_point_message_id TEXT,
    title                 TEXT NOT NULL DEFAULT '',
    created_at            TEXT NOT NULL,
    updated_at            TEXT NOT NULL,
    message_count         INTEGER NOT NULL DEFAULT 0,
    last_model            TEXT NOT NULL DEFAULT '',
    last_provider         TEXT NOT NULL DEFAULT '',
    summary_token_count   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sessions_by_update ON sessions (updated_at);

CREATE TABLE messages (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    role       TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX messages_by_session ON messages (session_id, id);

CREATE TABLE parts (
    id         TEXT PRIMARY KEY,
    message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    type       TEXT NOT NULL,
    data       TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX parts_by_message ON parts (message_id, id);

CREATE TABLE system_settings (
    key        TEXT PRIMARY KEY,
    value      TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

-- The digest tells a fact that is delivered twice from two facts.
CREATE TABLE system_logs (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    digest     TEXT NOT NULL UNIQUE,
    level      TEXT NOT NULL,
    category   TEXT NOT NULL,
    message    TEXT NOT NULL CHECK (message <> ''),
    request_id TEXT NOT NULL DEFAULT '',
    metadata   TEXT,
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE usage_metrics (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id        TEXT NOT NULL UNIQUE CHECK (request_id <> ''),
    session_id        TEXT NOT NULL DEFAULT '',
    endpoint          TEXT NOT NULL,
    model             TEXT NOT NULL,
    provider          TEXT NOT NULL,
    upstream          TEXT NOT NULL DEFAULT '',
    upstream_model    TEXT NOT NULL DEFAULT '',
    key_index         INTEGER NOT NULL DEFAULT 0,
    stream            INTEGER NOT NULL DEFAULT 0,
    status            TEXT NOT NULL,
    routing_reason    TEXT NOT NULL DEFAULT '',
    prompt_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    total_tokens      INTEGER NOT NULL,
    latency_ms        INTEGER NOT NULL,
    first_token_ms    INTEGER NOT NULL DEFAULT 0,
    attempts          TEXT NOT NULL DEFAULT '[]',
    created_at        TEXT NOT NULL
) STRICT;

CREATE TABLE daily_usage (
    day               TEXT NOT NULL,
    provider          TEXT NOT NULL,
    model             TEXT NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    total_tokens      INTEGER NOT NULL,
    request_count     INTEGER NOT NULL,
    error_count       INTEGER NOT NULL,
    PRIMARY KEY (day, provider, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE provider_health (
    provider    TEXT PRIMARY KEY,
    status      TEXT NOT NULL,
    last_error  TEXT NOT NULL DEFAULT '',
    active_keys INTEGER NOT NULL DEFAULT 0,
    failed_keys INTEGER NOT NULL DEFAULT 0,
    updated_at  TEXT NOT NULL
) STRICT;

CREATE TABLE web_content_cache (
    url       TEXT NOT NULL,
    mode      TEXT NOT NULL,
    content   TEXT NOT NULL,
    cached_at TEXT NOT NULL,
    PRIMARY KEY (url, mode)
) STRICT;

CREATE TABLE scraping_metrics (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    url              TEXT NOT NULL,
    query            TEXT NOT NULL DEFAULT '',
    status           TEXT NOT NULL,
    chars_count      INTEGER NOT NULL DEFAULT 0,
    response_summary TEXT NOT NULL DEFAULT '',
    latency_ms       INTEGER NOT NULL DEFAULT 0,
    created_at       TEXT NOT NULL
) STRICT;

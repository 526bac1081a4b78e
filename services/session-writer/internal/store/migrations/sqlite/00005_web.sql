-- +goose Up

-- Pages are kept in a bucket.
DROP TABLE web_content_cache;

-- A fetch or a search. Request, delivery and ordinal name it. With a session it is removed.
DROP TABLE scraping_metrics;
CREATE TABLE scraping_metrics (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id       TEXT NOT NULL CHECK (request_id <> ''),
    delivery         INTEGER NOT NULL,
    ordinal          INTEGER NOT NULL,
    session_id       TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    url              TEXT NOT NULL,
    query            TEXT NOT NULL DEFAULT '',
    status           TEXT NOT NULL CHECK (status IN ('cache_hit', 'success', 'failed', 'error')),
    chars_count      INTEGER NOT NULL DEFAULT 0,
    response_summary TEXT NOT NULL DEFAULT '',
    latency_ms       INTEGER NOT NULL DEFAULT 0,
    created_at       TEXT NOT NULL,
    UNIQUE (request_id, delivery, ordinal)
) STRICT;
CREATE INDEX scraping_metrics_by_session ON scraping_metrics (session_id) WHERE session_id IS NOT NULL;

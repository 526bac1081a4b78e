-- +goose Up

-- Pages are kept in a bucket.
DROP TABLE web_content_cache;

-- A fetch or a search. Request, delivery and ordinal name it. With a session it is removed.
DROP TABLE scraping_metrics;
CREATE TABLE scraping_metrics (
    id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    request_id       TEXT NOT NULL CHECK (request_id <> ''),
    delivery         BIGINT NOT NULL,
    ordinal          BIGINT NOT NULL,
    session_id       TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    url              TEXT NOT NULL,
    query            TEXT NOT NULL DEFAULT '',
    status           TEXT NOT NULL CHECK (status IN ('cache_hit', 'success', 'failed', 'error')),
    chars_count      BIGINT NOT NULL DEFAULT 0,
    response_summary TEXT NOT NULL DEFAULT '',
    latency_ms       BIGINT NOT NULL DEFAULT 0,
    created_at       TIMESTAMPTZ NOT NULL,
    UNIQUE (request_id, delivery, ordinal)
);
CREATE INDEX scraping_metrics_by_session ON scraping_metrics (session_id) WHERE session_id IS NOT NULL;

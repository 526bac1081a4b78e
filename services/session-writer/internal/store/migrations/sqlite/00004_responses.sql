-- +goose Up

-- A stored response belongs to a principal, and goes on from another one, '' = from none. "input" is the array of the items of its request, "response" what its
-- client got. One that was deleted leaves its row, so that a fact of it that comes late is nothing.
CREATE TABLE responses (
    id          TEXT PRIMARY KEY,
    previous_id TEXT NOT NULL,
    owner       TEXT NOT NULL,
    deleted     INTEGER NOT NULL DEFAULT 0,
    created_at  TEXT NOT NULL,
    expires_at  TEXT NOT NULL,
    input       TEXT NOT NULL,
    response    TEXT NOT NULL
) STRICT;
CREATE INDEX responses_by_expiry ON responses (expires_at);

-- +goose Up

-- A session belongs to the principal who used it first; '' = nobody yet. "turns" is the number of the last turn, "applied" the place in the stream
-- of facts up to which those of the session are known to be stored, "context_tokens" what its next prompt holds beside a summary.
ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN turns BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN applied BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN forks BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN context_tokens BIGINT NOT NULL DEFAULT 0;

-- Messages are ordered by turn and place. "body" is the message as Chat Completions has it, "original" as another protocol had it. What is short stands
-- first, so that it is read without the bodies.
ALTER TABLE messages ADD COLUMN turn BIGINT NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN place BIGINT NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN state TEXT NOT NULL DEFAULT 'done' CHECK (state IN ('done', 'open', 'partial', 'summary'));
ALTER TABLE messages ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN surface TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN body TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN original TEXT NOT NULL DEFAULT '';
DROP INDEX messages_by_session;
CREATE UNIQUE INDEX messages_in_order ON messages (session_id, turn, place);
CREATE INDEX messages_by_request ON messages (session_id, request_id);

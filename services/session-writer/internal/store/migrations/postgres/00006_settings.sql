-- +goose Up

-- Values of settings that operators changed while the gateway ran, as JSON, by their paths in the configuration file.
CREATE TABLE settings (
    name       TEXT PRIMARY KEY,
    value      TEXT NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

-- +goose Up

-- What clients with named keys have used, by quarters of an hour since 1970: budgets begin at midnight in any time zone.
CREATE TABLE client_usage (
    principal  TEXT NOT NULL,
    slot       BIGINT NOT NULL,
    tokens     BIGINT NOT NULL,
    cost_nanos BIGINT NOT NULL,
    last_used  TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (principal, slot)
);

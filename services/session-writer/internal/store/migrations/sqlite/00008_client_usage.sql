-- +goose Up

-- What clients with named keys have used, by quarters of an hour since 1970: budgets begin at midnight in any time zone.
CREATE TABLE client_usage (
    principal  TEXT NOT NULL,
    slot       INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    cost_nanos INTEGER NOT NULL,
    last_used  TEXT NOT NULL,
    PRIMARY KEY (principal, slot)
) STRICT;

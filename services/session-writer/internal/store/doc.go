// Package store keeps what HydraLLM remembers in SQLite or PostgreSQL: the usage ledger, the system log and, from its schema on, sessions.
// It is the only package that speaks SQL.
//
// SQLite runs in WAL mode with one connection that writes and a pool that reads, so writers queue in this process instead of meeting
// "database is locked", and a long reader delays nobody. PostgreSQL has one pool; several processes may share the database.
//
// Recording is idempotent: a fact that is delivered twice is stored and counted once. Texts are made valid and cut to a bound, numbers
// are kept within one, so that what the database refuses is a defect of a fact (ErrRejected) or a trouble that may pass.
package store

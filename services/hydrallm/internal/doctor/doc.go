// Package doctor looks at a configured gateway, and at one that runs, from outside: the configuration, each provider and its keys, the clock, the disk,
// NATS, the database, and an answer through the gateway. It changes nothing of what it looks at. What it finds is a list of rows, each of which says what
// to do about it.
package doctor

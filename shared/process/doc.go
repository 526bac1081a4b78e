// Package process is what the main functions have in common: settings, logs, traces, the connection to NATS, health checks, and the order in
// which all of it starts and stops.
package process

// Package broker runs a NATS server with JetStream inside the process.
package broker

// Package binaries tests the services as separate processes around a NATS server, the way they are deployed. It holds nothing but tests.
package binaries

// Package processtest builds the binaries of the gateway for tests, and runs them and other programs.
package processtest

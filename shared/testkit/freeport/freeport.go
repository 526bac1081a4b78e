// Package freeport finds loopback addresses for tests whose servers must be told where to listen.
package freeport

import (
	"net"
	"testing"
)

// Addr is an address, host:port, on which nobody listens now.
func Addr(tb testing.TB) string {
	tb.Helper()
	return find(tb).String()
}

// Port is the port of such an address.
func Port(tb testing.TB) int {
	tb.Helper()
	return find(tb).Port
}

func find(tb testing.TB) *net.TCPAddr {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("finding a free port: %v", err)
	}
	defer ln.Close()                //nolint:errcheck // nothing was written to it
	return ln.Addr().(*net.TCPAddr) //nolint:forcetypeassert // a TCP listener has one
}

// Package freeport finds loopback addresses for tests whose servers must be told where to listen.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
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

// The ports that are looked at. Systems take those of outgoing connections, and of servers that leave the choice to them, from 32768 on, so that none
// of these is taken by anything like that until the server of a test listens on it, or while it starts again.
const (
	firstPort = 10000
	ports     = 32768 - firstPort
	tries     = 1000
)

// next counts through the ports, so that each is given once. Processes begin at different places: one rarely comes to a port that another has been given
// and does not listen on yet.
var next atomic.Int64

func init() { next.Store(rand.Int64N(ports)) }

func find(tb testing.TB) *net.TCPAddr {
	tb.Helper()
	var failed error
	for range tries {
		port := firstPort + int(next.Add(1)%ports)
		ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			failed = err
			continue
		}
		defer ln.Close()                //nolint:errcheck // nothing was written to it
		return ln.Addr().(*net.TCPAddr) //nolint:forcetypeassert // a TCP listener has one
	}
	tb.Fatalf("finding a free port: %v", failed)
	panic("unreachable")
}

// Package natstest starts real NATS servers with JetStream inside the test process.
package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Start runs an embedded server without a listener, on a directory that goes with the test, and stops it at the end of the test.
func Start(tb testing.TB) *server.Server {
	tb.Helper()
	return run(tb, &server.Options{DontListen: true})
}

// StartListening is Start with a listener on a free loopback port; its address is ClientURL.
func StartListening(tb testing.TB) *server.Server {
	tb.Helper()
	return run(tb, &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT})
}

func run(tb testing.TB, opts *server.Options) *server.Server {
	tb.Helper()
	opts.JetStream, opts.StoreDir = true, tb.TempDir()
	opts.JetStreamMaxMemory, opts.JetStreamMaxStore = 4<<30, 16<<30
	opts.NoLog, opts.NoSigs = true, true
	opts.MaxPayload = 8 << 20
	s, err := server.NewServer(opts)
	if err != nil {
		tb.Fatalf("creating the NATS server: %v", err)
	}
	s.Start()
	tb.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		tb.Fatal("the NATS server does not get ready")
	}
	return s
}

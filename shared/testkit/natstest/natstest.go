// Package natstest starts real NATS servers with JetStream inside the test process.
package natstest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hydrallm/shared/testkit/await"
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

// Launch runs a server as Start does, for an example, which has no test to hold on to. Its data is in dir. The caller must call stop.
func Launch(dir string) (s *server.Server, stop func(), err error) {
	return launch(dir, &server.Options{DontListen: true})
}

func run(tb testing.TB, opts *server.Options) *server.Server {
	tb.Helper()
	s, stop, err := launch(tb.TempDir(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(stop)
	return s
}

func launch(dir string, opts *server.Options) (s *server.Server, stop func(), err error) {
	opts.JetStream, opts.StoreDir = true, dir
	opts.JetStreamMaxMemory, opts.JetStreamMaxStore = 4<<30, 16<<30
	opts.NoLog, opts.NoSigs = true, true
	opts.MaxPayload, opts.WriteDeadline = 8<<20, time.Minute
	if s, err = server.NewServer(opts); err != nil {
		return nil, nil, fmt.Errorf("creating the NATS server: %w", err)
	}
	s.Start()
	stop = func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	if !s.ReadyForConnections(await.Limit) {
		stop()
		return nil, nil, errors.New("the NATS server does not get ready")
	}
	return s, stop, nil
}

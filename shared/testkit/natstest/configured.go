package natstest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"hydrallm/shared/testkit/await"
)

// Configured is a server inside the test process that runs a configuration file.
type Configured struct {
	*server.Server

	complaints complaints
}

// StartConfigured runs a server with a configuration file, which says where it listens and where its data is, until the end of the test.
func StartConfigured(tb testing.TB, path string) *Configured {
	tb.Helper()
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		tb.Fatalf("reading the configuration of a NATS server: %v", err)
	}
	opts.NoSigs = true
	s, err := server.NewServer(opts)
	if err != nil {
		tb.Fatalf("creating a NATS server: %v", err)
	}
	c := &Configured{Server: s}
	s.SetLoggerV2(&c.complaints, false, false, false)
	s.Start()
	tb.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(await.Limit) {
		tb.Fatal("the NATS server does not get ready")
	}
	return c
}

// Violations are the lines in which the server says that it refused something.
func (c *Configured) Violations() []string {
	c.complaints.mu.Lock()
	defer c.complaints.mu.Unlock()
	return append([]string(nil), c.complaints.violations...)
}

// complaints is a log that keeps what was refused.
type complaints struct {
	mu         sync.Mutex
	violations []string
}

// Errorf implements server.Logger.
func (c *complaints) Errorf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	if !strings.Contains(line, "Violation") {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, line)
}

// Noticef implements server.Logger.
func (*complaints) Noticef(string, ...any) {}

// Warnf implements server.Logger.
func (*complaints) Warnf(string, ...any) {}

// Fatalf implements server.Logger.
func (*complaints) Fatalf(string, ...any) {}

// Debugf implements server.Logger.
func (*complaints) Debugf(string, ...any) {}

// Tracef implements server.Logger.
func (*complaints) Tracef(string, ...any) {}

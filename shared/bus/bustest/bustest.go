// Package bustest connects tests to real NATS servers.
package bustest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/testkit/natstest"
)

// Start gives a connection to a server of its own. Both end with the test.
func Start(tb testing.TB) *bus.Bus {
	tb.Helper()
	return Connect(tb, natstest.Start(tb))
}

// Connect gives one more connection to a server. It is closed at the end of the test, after what is registered for it later.
func Connect(tb testing.TB, server bus.InProcess) *bus.Bus {
	tb.Helper()
	b, err := bus.Connect(tb.Context(), bus.Config{InProcess: server, Name: tb.Name(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, b.Close(context.WithoutCancel(tb.Context()))) })
	return b
}

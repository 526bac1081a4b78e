// Package gatewaytest runs the whole gateway in the process of a test.
package gatewaytest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/gateway"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/await"
)

// started is closed when everything before it in the order of the start has started.
type started chan struct{}

func (s started) Start(context.Context) error { close(s); return nil }
func (started) Stop(context.Context) error    { return nil }

// Run runs a gateway, which takes requests when it returns. stop ends it and gives how it ended, each time; at the end of the test it has to have ended well.
func Run(tb testing.TB, s process.Settings, log *slog.Logger) (stop func() error) {
	tb.Helper()
	return Serve(tb, func(ctx context.Context, added lifecycle.Named) error { return gateway.Run(ctx, s, log, added) })
}

// Serve is Run for what run makes of a gateway: it is to start what is added as the last part.
func Serve(tb testing.TB, run func(ctx context.Context, added lifecycle.Named) error) (stop func() error) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	up, done := make(started), make(chan error, 1)
	go func() { done <- run(ctx, lifecycle.Named{Name: "the test", Service: up}) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(await.Limit):
			return errors.New("the gateway does not stop")
		}
	})
	tb.Cleanup(func() { require.NoError(tb, stop()) })
	select {
	case <-up:
	case err := <-done:
		done <- err
		tb.Fatalf("the gateway has not started: %v", err)
	case <-time.After(await.Limit):
		tb.Fatal("the gateway does not start")
	}
	return stop
}

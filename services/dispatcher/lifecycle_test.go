package dispatcher_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher"
	"hydrallm/shared/contract"
)

// created gives a dispatcher that has not started.
func (p *pipeline) created() *dispatcher.Dispatcher {
	p.t.Helper()
	d, err := dispatcher.New(dispatcher.Config{ID: "d", Gateway: gateway(p.t, p.oneUpstream(""))}, p.connect(), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(p.t, err)
	return d
}

// The contract of lifecycle.Service.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	t.Run("never started", func(t *testing.T) {
		t.Parallel()
		stop(t, setup(t).created())
	})
	t.Run("stopped and started twice", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		d := p.created()
		for _, rid := range []string{"r1", "r2"} {
			require.NoError(t, d.Start(t.Context()))
			require.NoError(t, d.Start(t.Context()))
			p.ask(rid, plainBody)
			require.Equal(t, contract.OutcomeSuccess, p.await(rid).outcome)
			stop(t, d)
			stop(t, d)
		}
	})
	t.Run("a start without a server", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		d := p.created()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, d.Start(ctx))
		stop(t, d)
		require.NoError(t, d.Start(t.Context()))
		stop(t, d)
	})
	t.Run("from many sides", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		d := p.created()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if i%2 == 0 {
					require.NoError(t, d.Start(t.Context()))
				} else {
					require.NoError(t, d.Stop(t.Context()))
				}
			})
		}
		wg.Wait()
		stop(t, d)
	})
}

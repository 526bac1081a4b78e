package dispatcher_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/startstoptest"
)

// created gives a dispatcher that has not started.
func (p *pipeline) created() *dispatcher.Dispatcher {
	p.t.Helper()
	d, err := dispatcher.New(dispatcher.Config{ID: "d", Gateway: gateway(p.t, p.oneUpstream(""))}, p.connect(), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(p.t, err)
	return d
}

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n := 0
	startstoptest.Stress(t, p.created(), func() {
		n++
		rid := fmt.Sprint("r", n)
		p.ask(rid, plainBody)
		require.Equal(t, contract.OutcomeSuccess, p.await(rid).outcome)
	})
}

package dispatcher

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/contract"
)

// Scenario 14, R-085, B-01: what routing is told of a provider costs nothing: it takes no probe and no key, however often it is told.
func TestTierScanTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := configtest.Parse(t, `providers: [{id: p, url: "http://h/v1", keys: [a, {value: b, tier: premium}]}, {id: q, url: "http://h/v1"}]`)
		log := slog.New(slog.DiscardHandler)
		s := &state{id: "d", gateway: func() *config.Config { return cfg }, log: log, keys: pools(cfg, func(string, keypool.Cooldown) {})}
		var err error
		s.breakers, err = newBreakers(cfg, log, prometheus.NewRegistry(), func(string) {})
		require.NoError(t, err)
		circuit := s.breakers.Get(plan.ProviderCircuit("p"))
		usable := map[string]contract.ProviderState{
			"p": {Keys: map[string]int{contract.TierUnknown: 1, contract.TierPremium: 1}}, "q": {Keys: map[string]int{contract.TierUnknown: 1}},
		}
		scan := func(want map[string]contract.ProviderState) {
			for range 100 {
				require.Equal(t, want, s.providers())
			}
		}
		scan(usable)
		for range 5 {
			permit, ok := circuit.Acquire()
			require.True(t, ok)
			permit.Failure(0)
		}
		open := map[string]contract.ProviderState{"p": {Keys: usable["p"].Keys, Open: true}, "q": usable["q"]}
		scan(open)
		<-time.After(time.Minute)
		scan(usable)
		probe, ok := circuit.Acquire()
		require.True(t, ok, "the probe is still there")
		scan(open)
		_, ok = circuit.Acquire()
		require.False(t, ok)
		probe.Success()
		scan(usable)
		require.Zero(t, s.keys["p"].Snapshot()[0].Calls)
	})
}

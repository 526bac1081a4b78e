package dispatcher

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/config"
	"hydrallm/shared/query"
)

// the slots are shown under every name that has a limit.
func TestSlotsShown(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{
		Providers: []config.Provider{{ID: "p", Limit: 5}, {ID: "q"}},
		Upstreams: []config.Upstream{{ID: "a", Provider: "p", Model: "m", Limit: 4}, {ID: "b", Provider: "p", Model: "n"}},
	}
	var slots slot.Local
	for _, id := range []string{"p/m", "p/m", "p/x/y", "gone/z"} {
		lease, _, err := slots.Acquire(t.Context(), []slot.Candidate{{ID: id}}, nil)
		require.NoError(t, err)
		defer lease.Release()
	}
	require.Equal(t, []query.Load{{ID: "a", Active: 2, Limit: 4}, {ID: "b"}, {ID: "p/m", Active: 2, Limit: 5}, {ID: "p/x/y", Active: 1, Limit: 5}}, slotLoads(cfg, &slots))
	require.NoError(t, testutil.CollectAndCompare(newSlotMetrics(func() *config.Config { return cfg }, func() slot.Acquirer { return &slots }), strings.NewReader(`
# HELP hydrallm_slots_active Calls of this process under way.
# TYPE hydrallm_slots_active gauge
hydrallm_slots_active{upstream="a"} 2
hydrallm_slots_active{upstream="b"} 0
hydrallm_slots_active{upstream="provider:p"} 3
hydrallm_slots_active{upstream="provider:q"} 0
# HELP hydrallm_slots_limit Limit of concurrent calls to a model over all dispatchers; 0 is none.
# TYPE hydrallm_slots_limit gauge
hydrallm_slots_limit{upstream="a"} 4
hydrallm_slots_limit{upstream="b"} 0
hydrallm_slots_limit{upstream="provider:p"} 5
hydrallm_slots_limit{upstream="provider:q"} 0
`)))
	require.Zero(t, testutil.CollectAndCount(newSlotMetrics(func() *config.Config { return cfg }, func() slot.Acquirer { return nil })))
}

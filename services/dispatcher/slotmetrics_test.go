package dispatcher

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/slot"
)

// the slots are among the metrics.
func TestSlotMetrics(t *testing.T) {
	t.Parallel()
	var slots slot.Local
	lease, _, err := slots.Acquire(t.Context(), []slot.Candidate{{ID: "a", Limit: 4}}, nil)
	require.NoError(t, err)
	defer lease.Release()
	require.NoError(t, testutil.CollectAndCompare(newSlotMetrics(slots.Active), strings.NewReader(`
# HELP hydrallm_slots_active Calls of this process under way.
# TYPE hydrallm_slots_active gauge
hydrallm_slots_active{upstream="a"} 1
# HELP hydrallm_slots_limit Limit of concurrent calls over all dispatchers; 0 is none.
# TYPE hydrallm_slots_limit gauge
hydrallm_slots_limit{upstream="a"} 4
`)))
}

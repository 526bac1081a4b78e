package dispatcher

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/shared/config"
)

// a circuit is shown as open for as long as it lets no call through.
func TestBreakerMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := breaker.Config{Consecutive: 1, OpenFor: time.Minute, HalfOpen: true}
		set, err := breaker.NewSet(map[string]breaker.Config{"a": limits, "b": limits, "gone": limits}, nil)
		require.NoError(t, err)
		metrics := newBreakerMetrics(func() *config.Config { return &config.Config{Upstreams: []config.Upstream{{ID: "a"}, {ID: "b"}}} }, set)
		shown := func(a string) {
			t.Helper()
			require.NoError(t, testutil.CollectAndCompare(metrics, strings.NewReader(`
# HELP hydrallm_breaker_open 1 while a circuit lets no call through.
# TYPE hydrallm_breaker_open gauge
hydrallm_breaker_open{upstream="a"} `+a+`
hydrallm_breaker_open{upstream="b"} 0
`)))
		}
		shown("0")
		permit, ok := set.Get("a").Acquire()
		require.True(t, ok)
		permit.Failure(0)
		shown("1")
		time.Sleep(time.Minute) //nolint:forbidigo // fake time: the circuit's is over
		shown("0")
	})
}

package dispatcher

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/telemetry"
)

// whoever watches the log and the metrics sees that a key rests, which one, why and for how long, and nothing of its value.
func TestRestingKeysAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := configtest.Parse(t, `providers: [{id: p, url: "http://h/v1", keys: [secret-a, secret-b, secret-c]}]`)
		var out strings.Builder
		log, closeLog, err := telemetry.NewLogger(telemetry.LogConfig{Level: "info", Format: "text"}, &out)
		require.NoError(t, err)
		all := pools(cfg, func(provider string, r keypool.Cooldown) { logCooldown(log, provider, r) })
		metrics := newKeyMetrics(all)
		fail := func(index int, v classify.Verdict) {
			lease, ok := all["p"].Pick("m\x1b1", keypool.AnyKey, func(i int) bool { return i != index })
			require.True(t, ok)
			lease.Report(v)
		}
		compare := func(usable, partly, resting string) {
			require.NoError(t, testutil.CollectAndCompare(metrics, strings.NewReader(`
# HELP hydrallm_keys Keys of a provider's pool: usable, resting for some models (partly), or resting for all.
# TYPE hydrallm_keys gauge
hydrallm_keys{provider="p",state="usable"} `+usable+`
hydrallm_keys{provider="p",state="partly"} `+partly+`
hydrallm_keys{provider="p",state="resting"} `+resting+`
`)))
		}
		compare("3", "0", "0")
		fail(0, classify.Verdict{Class: classify.Auth, Cooldown: classify.ForbiddenCooldown})
		fail(1, classify.Verdict{Class: classify.Rate, Cooldown: classify.QuotaCooldown, PerModel: true, Stated: true, Wait: 7 * time.Second})
		fail(2, classify.Verdict{Class: classify.Client})
		compare("1", "1", "1")
		require.NoError(t, closeLog())
		var lines []string
		for line := range strings.Lines(out.String()) {
			_, line, _ = strings.Cut(line, " ")
			lines = append(lines, line)
		}
		require.Equal(t, []string{
			"WRN [llm-proxy] key rests provider=p key=0 reason=auth for=24h0m0s\n",
			"INF [llm-proxy] key rests provider=p key=1 reason=rate_limit for=7s model=m?1\n",
		}, lines)
		require.NotContains(t, out.String(), "secret")
		<-time.After(8 * time.Second)
		compare("2", "0", "1")
	})
}

// What fails is a warning unless it is over soon.
func TestLevelsOfRests(t *testing.T) {
	t.Parallel()
	for _, class := range classify.Classes {
		var out strings.Builder
		logCooldown(slog.New(slog.NewTextHandler(&out, nil)), "p", keypool.Cooldown{Class: class, Until: time.Now().Add(time.Minute)})
		require.Equal(t, class == classify.Rate, strings.Contains(out.String(), "level=INFO"), class)
	}
}

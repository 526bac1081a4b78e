package execute

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
)

// calls and tokens are counted by the model that was asked. A label never holds what only a client knows.
func TestGenAI(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	g := newGenAI(reg, func(provider, model string) bool { return provider == "p" && model == "known" })
	g.expect("chat", "p", "known")
	ok, failed := classify.Verdict{Class: classify.Success}, classify.Verdict{Class: classify.Rate}
	g.call("chat", "p", "known", ok, stream.Usage{Prompt: 5, Completion: 2}, time.Second)
	g.call("chat", "p", "known", failed, stream.Usage{}, time.Second)
	g.call("chat", "q", "made up", ok, stream.Usage{Prompt: 4}, time.Second)
	g.call("chat", "q", "made up too", ok, stream.Usage{Prompt: 4, Completion: 1}, time.Second)
	families, err := reg.Gather()
	require.NoError(t, err)
	type figure struct {
		count uint64
		sum   float64
	}
	got := map[string]figure{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			h := m.GetHistogram()
			got[strings.Join(labels, " ")] = figure{h.GetSampleCount(), h.GetSampleSum()}
		}
	}
	require.Equal(t, map[string]figure{
		" chat p known": {1, 1}, "rate_limit chat p known": {1, 1}, " chat q other": {2, 2},
		"chat p known input": {1, 5}, "chat p known output": {1, 2}, "chat q other input": {2, 8}, "chat q other output": {2, 1},
	}, got)
}

package telemetry

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// a label holds no name that only a client knows, and there is a limit to those that are known.
func TestModelNames(t *testing.T) {
	t.Parallel()
	names := NewModelNames(func(provider, model string) bool { return provider == "p" && model != "invented" })
	require.Equal(t, OtherModel, names.Label("p", "invented"))
	require.Equal(t, OtherModel, names.Label("q", "m"))
	for range 2 {
		require.Equal(t, "m", names.Label("p", "m"))
	}
	labels := map[string]bool{}
	for i := range 5000 {
		labels[names.Label("p", fmt.Sprintf("model-%d", i))] = true
	}
	require.Len(t, labels, maxModelNames, "m has one, and all that are too many have one together")
	require.True(t, labels[OtherModel])
	require.Equal(t, "m", names.Label("p", "m"))
}

// the members of a vector are found without an allocation.
//
// Not parallel: allocations are counted.
func TestObservers(t *testing.T) { //nolint:paralleltest // see above
	type key struct{ a, b string }
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "x", Help: "y"}, []string{"a", "b"})
	observers := NewObservers(vec, func(k key) []string { return []string{k.a, k.b} })
	observers.Of(key{"1", "2"}).Observe(1)
	require.Equal(t, 1, testutil.CollectAndCount(vec))
	require.Zero(t, testing.AllocsPerRun(100, func() { observers.Of(key{"1", "2"}).Observe(1) }))
}

func BenchmarkObservers(b *testing.B) {
	type key struct{ operation, provider, model, failure string }
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "x", Help: "y", Buckets: GenAISeconds},
		[]string{LabelOperation, LabelProvider, LabelRequestModel, LabelErrorType})
	observers := NewObservers(vec, func(k key) []string { return []string{k.operation, k.provider, k.model, k.failure} })
	k := key{"chat", "openai", "gpt-5", ""}
	b.Run("kept", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			observers.Of(k).Observe(.5)
		}
	})
	b.Run("looked up", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			vec.WithLabelValues(k.operation, k.provider, k.model, k.failure).Observe(.5)
		}
	})
}

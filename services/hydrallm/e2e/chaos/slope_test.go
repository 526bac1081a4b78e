//go:build e2e

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// series is a value over time, at equal distances.
type series []float64

// growth is what a series does in its second half.
type growth struct {
	first, last float64 // medians of the first and the last quarter of it
	by          float64 // how much it grows, by the median of all slopes (Theil and Sen)
	grows       bool
}

func (g growth) String() string {
	return fmt.Sprintf("by %.1f, from %.1f to %.1f", g.by, g.first, g.last)
}

// tolerance is the share of a value by which it may grow in the second half, and least is what it may grow in any case.
const tolerance = 0.1

// limitOf is by how much a value may grow at least: what collectors, pools and batches move it by.
func limitOf(name string) (least float64) {
	switch {
	case strings.HasSuffix(name, "MiB"):
		return 8
	case strings.HasSuffix(name, "KiB"):
		return 1024
	case strings.HasSuffix(name, "stored yet"):
		return 1000
	}
	return 20
}

// growth judges the second half of a series. The median of the slopes between all pairs of values is moved by no single one.
func (s series) growth(least float64) growth {
	s = s[len(s)/2:]
	var slopes []float64
	for i := range s {
		for j := range i {
			slopes = append(slopes, (s[i]-s[j])/float64(i-j))
		}
	}
	g := growth{first: median(s[:max(1, len(s)/4)]), last: median(s[len(s)-max(1, len(s)/4):])}
	if len(slopes) > 0 {
		g.by = median(slopes) * float64(len(s)-1)
	}
	g.grows = g.by > max(least, tolerance*g.first)
	return g
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// growths is the report of a soak.
func growths(all map[string]series, lasts time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| what | at the start | after half | at the end | slope of the second half, per hour |\n|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		g := s.growth(limitOf(name))
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %+.1f |\n", name, s[0], g.first, g.last, g.by/(lasts.Hours()/2))
	}
	return b.String()
}

// The judge of a soak sees what grows, and no more.
func TestGrowth(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value func(i int) float64
		want  bool
	}{
		"flat":                       {func(int) float64 { return 100 }, false},
		"noise":                      {func(i int) float64 { return 100 + float64(i*7919%31) }, false},
		"grows at first":             {func(i int) float64 { return 100 + float64(min(i, 50)) }, false},
		"leaks":                      {func(i int) float64 { return 100 + float64(i) }, true},
		"leaks under noise":          {func(i int) float64 { return 100 + float64(i) + float64(i*7919%31) }, true},
		"shrinks":                    {func(i int) float64 { return 300 - float64(i) }, false},
		"jumps once, at the end":     {func(i int) float64 { return 100 + float64(i/118*500) }, false},
		"grows within the tolerance": {func(i int) float64 { return 1000 + float64(i) }, false},
		"a saw, as of a collector":   {func(i int) float64 { return 100 + float64(i%20) }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s series
			for i := range samples {
				s = append(s, tt.value(i))
			}
			require.Equal(t, tt.want, s.growth(20).grows, "%s", s.growth(20))
		})
	}
}

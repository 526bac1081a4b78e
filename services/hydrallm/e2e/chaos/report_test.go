//go:build e2e

package chaos

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is what clients saw in one scenario.
type row struct {
	name     string
	requests int
	streamed int
	failed   int // before the first byte of an answer
	cut      int // while streaming
	again    int // requests for which an upstream was called more than once
	calls    int
	p50, p99 time.Duration
	recovery time.Duration // from the fault to the end of the last request that was under way then

	perRequest map[int]int // upstream calls
}

func newRow(name string, results []result, calls map[int]int, struck time.Time) row {
	r := row{name: name, requests: len(results), perRequest: calls}
	var took []time.Duration
	for _, q := range results {
		took = append(took, q.ended.Sub(q.began))
		if q.stream {
			r.streamed++
		}
		switch {
		case q.unfinished():
			r.failed++
		case q.outcome != complete:
			r.cut++
		}
		r.calls += calls[q.n]
		if calls[q.n] > 1 {
			r.again++
		}
		if q.began.Before(struck) {
			r.recovery = max(r.recovery, q.ended.Sub(struck))
		}
	}
	slices.Sort(took)
	r.p50, r.p99 = took[len(took)/2], took[len(took)*99/100]
	return r
}

const columns = "| scenario | requests | streamed | failed before the first byte | cut while streaming | upstream calls per request | called again | p50 | p99 | recovery |\n" +
	"|---|---|---|---|---|---|---|---|---|---|\n"

func (r row) String() string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %.3f | %d | %.2f s | %.2f s | %.1f s |", r.name, r.requests, r.streamed, r.failed, r.cut, float64(r.calls)/float64(r.requests), r.again,
		r.p50.Seconds(), r.p99.Seconds(), r.recovery.Seconds())
}

// table is the report, as docs/reliability.md has it.
func table(seed uint64, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d cores, seed %d\n\n%s", time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), seed, columns)
	for _, r := range rows {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}

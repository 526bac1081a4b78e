package faulttest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"hydrallm/shared/testkit/await"
)

// fasthttp keeps the text of the Date header in a goroutine for the life of the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

const (
	requests    = 1000 // of each test
	clients     = 50   // at the same time
	providerKey = "key-of-a-provider"
	adminKey    = "key-of-the-operator"

	// grace is how long an upstream may still be called for a client that has left, or the call go on (R-012, CXL-01).
	grace = time.Second

	testWait = await.Limit
)

// seedOf gives the seed of this run; FAULT_SEED brings the questions and faults of another run again.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("FAULT_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("FAULT_SEED=%d", seed)
	return seed
}

// Whatever upstreams and clients do: every answer is complete or a well-formed error, nothing is called for those who left, and nothing is
// left over.
//
//nolint:paralleltest // it measures the memory of the process
func TestRandomFaults(t *testing.T) {
	seed := seedOf(t)
	for name, listen := range map[string]bool{"slots of this process": false, "slots shared through NATS": true} {
		t.Run(name, func(t *testing.T) {
			x := start(t, seed, listen)
			x.rage(t, 0, clients) // brings what is allocated once
			x.idle(t)
			before := heap()
			x.rage(t, clients, requests)
			x.idle(t)
			x.checkVariety(t)
			x.checkCalls(t)
			x.checkLedger(t)
			after := heap()
			t.Logf("heap: %d KiB before, %d KiB after", before>>10, after>>10)
			require.Less(t, after, before+32<<20) // the fake upstreams remember the calls
			require.NoError(t, x.stop())
			require.Empty(t, x.log.String(), "errors or keys in the log")
		})
	}
}

// ask puts a question and fails the test when the answer is no good.
func (x *faultRun) ask(t *testing.T, n int) {
	t.Helper()
	q := newQuestion(x.seed, n)
	r, err := ask(t.Context(), x.client, x.url, q)
	if err != nil {
		t.Errorf("question %d (stream %t): %v", n, q.stream, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.results[n] = r
}

// rage puts so many questions, from the given number on.
func (x *faultRun) rage(t *testing.T, from, count int) {
	t.Helper()
	var next atomic.Int64
	var asking sync.WaitGroup
	for range clients {
		asking.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				x.ask(t, from+i)
			}
		})
	}
	lag := watchLag()
	asking.Wait()
	x.lag = max(x.lag, lag())
	x.client.CloseIdleConnections()
}

// watchLag measures how late the machine runs what is due, until the function that it gives is called.
func watchLag() func() time.Duration {
	const tick = 20 * time.Millisecond
	var worst time.Duration
	var watching sync.WaitGroup
	done := make(chan struct{})
	watching.Go(func() {
		for due := time.Now().Add(tick); ; due = time.Now().Add(tick) {
			select {
			case <-time.After(tick):
				worst = max(worst, time.Since(due))
			case <-done:
				return
			}
		}
	})
	return func() time.Duration {
		close(done)
		watching.Wait()
		return worst
	}
}

// checkVariety requires that everything happened that a fault test is made of.
func (x *faultRun) checkVariety(t *testing.T) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	count := map[outcome]int{}
	for _, r := range x.results {
		count[r.outcome]++
	}
	t.Logf("%d requests: %v", len(x.results), count)
	for _, out := range []outcome{complete, broken, refused, left} {
		require.Positive(t, count[out], out)
	}
	for _, f := range faults {
		if x.played[f.name] == 0 {
			t.Logf("no upstream played %q", f.name)
		}
	}
}

// idle waits until nothing of a request is left: no slot is taken, and no goroutine runs for it (R-140, SLOT-01, SLOT-04).
func (x *faultRun) idle(t *testing.T) {
	t.Helper()
	var state, stacks string
	idle := func() bool {
		state = x.admin(t, "status")
		stacks = goroutines()
		return !busy(state) && !strings.Contains(stacks, "execute.(*Executor).Run") && !strings.Contains(stacks, "httpapi.(*stream).WriteTo")
	}
	if !waitFor(idle, testWait) {
		t.Fatalf("something of the requests is left: %s\n%s", state, stacks)
	}
	require.Contains(t, state, `"slots":[{"id":"a","active":0,"limit":20},{"id":"b","active":0,"limit":20},{"id":"c","active":0,"limit":12}]`)
}

// busy says whether a slot is taken.
func busy(state string) bool {
	var s struct{ Slots []struct{ Active int } }
	if err := json.Unmarshal([]byte(state), &s); err != nil {
		return true
	}
	for _, slot := range s.Slots {
		if slot.Active != 0 {
			return true
		}
	}
	return false
}

func waitFor(ok func() bool, limit time.Duration) bool {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(limit); time.Now().Before(end); <-ticker.C {
		if ok() {
			return true
		}
	}
	return false
}

func goroutines() string {
	var buf bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&buf, 1) // to memory
	return buf.String()
}

// heap is what is in use after a collection.
func heap() uint64 {
	for range 3 { // pools are emptied by the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// checkCalls is about what the upstreams saw. The way of a cancellation has several steps, each of which a busy machine delays.
func (x *faultRun) checkCalls(t *testing.T) {
	t.Helper()
	const steps = 5
	limit := grace + steps*x.lag
	t.Logf("a client that left may still be served for %s", limit)
	for name, u := range x.upstreams {
		seen := map[int]bool{}
		for _, r := range u.Requests() {
			n, err := numberOf(r.Body)
			require.NoError(t, err)
			require.Equal(t, "/v1/chat/completions", r.Path, "a redirect was followed")
			require.Equal(t, providerKey+"-"+name, r.Key())
			require.Equal(t, "real-"+name, r.Model())
			require.False(t, seen[n], "question %d came to %s twice", n, name)
			seen[n] = true
			if at := x.results[n].left; !at.IsZero() {
				require.Less(t, r.At.Sub(at), limit, "question %d was put to %s after its client had left", n, name)
				require.Less(t, r.Ended.Sub(at), limit, "the call of %s for question %d went on after its client had left", name, n)
			}
		}
	}
}

// checkLedger requires a usage fact for each answer, and no second one. Those who left early may have left before they had asked.
func (x *faultRun) checkLedger(t *testing.T) {
	t.Helper()
	answered := 0
	for _, r := range x.results {
		if r.outcome != left {
			answered++
		}
	}
	var stats struct {
		Total int `json:"total_requests"`
	}
	counted := func() bool {
		require.NoError(t, json.Unmarshal([]byte(x.admin(t, "stats")), &stats))
		return stats.Total >= answered
	}
	require.True(t, waitFor(counted, testWait), "%d requests in the ledger, %d answered", stats.Total, answered)
	require.LessOrEqual(t, stats.Total, len(x.results))
}

package binaries

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/query"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/processtest"
)

// admin gets an admin route of a gateway.
func admin[A any](t *testing.T, addr, path string) (answer A) {
	t.Helper()
	got := client{base: "http://" + addr + "/v1/admin"}.do(t, http.MethodGet, path, "", "X-Admin-Key", adminKey)
	require.Equal(t, http.StatusOK, got.status, got.body)
	require.NoError(t, json.Unmarshal([]byte(got.body), &answer))
	return answer
}

// mostCalls is how many calls a gateway shows. No test makes as many.
const mostCalls = 1000

// calls gives the ledger of a gateway.
func calls(t *testing.T, addr string) []query.Call {
	t.Helper()
	rows := admin[[]query.Call](t, addr, fmt.Sprintf("/calls?limit=%d", mostCalls))
	require.Less(t, len(rows), mostCalls)
	return rows
}

// settled waits until the ledger has at least n calls and knows what became of each.
func settled(t *testing.T, addr string, n int) (rows []query.Call) {
	t.Helper()
	await.True(t, func() bool {
		rows = calls(t, addr)
		return len(rows) >= n && count(rows, "begun") == 0
	}, n, "calls in the ledger, with their ends")
	return rows
}

func count(rows []query.Call, outcome string) (n int) {
	for _, r := range rows {
		if r.Outcome == outcome {
			n++
		}
	}
	return n
}

// distinct fails if a call is there twice.
func distinct(t *testing.T, rows []query.Call) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range rows {
		id := strings.Join([]string{r.RequestID, string(rune(r.Delivery)), string(rune(r.Ordinal))}, " ")
		require.False(t, seen[id], "%+v", r)
		seen[id] = true
	}
}

// crowd asks from several connections at once, each again and again, until stop is closed, and no more than most times: a machine may be fast.
func crowd(ctx context.Context, addr string, clients, most int, stop <-chan struct{}) (wait func()) {
	var asked atomic.Int64
	tr := &http.Transport{MaxIdleConnsPerHost: clients}
	c := &http.Client{Transport: tr}
	var asking sync.WaitGroup
	for i := range clients {
		asking.Go(func() {
			for asked.Add(1) <= int64(most) {
				select {
				case <-stop:
					return
				default:
					askOnce(ctx, c, addr, "m", i)
				}
			}
		})
	}
	return func() {
		asking.Wait()
		tr.CloseIdleConnections()
	}
}

// a dispatcher is killed while calls of all kinds are under way: some hang, some stream, some are the second try, some are done. The ledger
// has as many calls as the upstream has seen: those under way as lost, and those that failed before as what they were.
func TestKilledDispatcherLosesNoCall(t *testing.T) {
	t.Parallel()
	const clients = 60
	f := newFleet(t)
	f.start(t, "session-writer")
	f.start(t, "ingress")
	first := f.start(t, "dispatcher")
	var killed atomic.Bool
	var refused atomic.Int64
	f.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		_, kind, _ := strings.Cut(string(r.Body), "question ")
		switch kind = strings.TrimRight(kind[:strings.IndexByte(kind, '"')], " "); {
		case killed.Load(), strings.HasSuffix(kind, "1"), strings.HasSuffix(kind, "6"):
			return echo(r)
		case strings.HasSuffix(kind, "2"), strings.HasSuffix(kind, "8"):
			return fakellm.Stream("x").First(2, fakellm.Hang)
		case r.Model() == "real" && (strings.HasSuffix(kind, "3") || strings.HasSuffix(kind, "4")):
			refused.Add(1)
			return fakellm.Error(http.StatusInternalServerError, "no")
		}
		return fakellm.NoAnswer()
	})
	tr := &http.Transport{MaxIdleConnsPerHost: clients}
	defer tr.CloseIdleConnections()
	var asking sync.WaitGroup
	var done atomic.Int64
	for i := range clients {
		asking.Go(func() {
			if a := askOnce(t.Context(), &http.Client{Transport: tr}, f.ingress, "two", i); a.status == http.StatusOK && i%5 == 1 {
				done.Add(1)
			}
		})
	}
	const hanging = clients * 8 / 10
	await.True(t, func() bool { return f.upstream.Active() == hanging && done.Load() == clients-hanging })
	f.start(t, "dispatcher")
	killed.Store(true)
	first.End(t, syscall.SIGKILL)
	asking.Wait()

	rows := settled(t, f.ingress, len(f.upstream.Requests()))
	require.Len(t, rows, len(f.upstream.Requests()), "as many as the upstream was asked for")
	distinct(t, rows)
	require.Equal(t, int(refused.Load()), count(rows, "failed"))
	require.GreaterOrEqual(t, count(rows, "lost"), hanging)
	for _, r := range rows {
		require.Equal(t, "anonymous", r.Principal)
	}
	require.Equal(t, count(rows, "lost"), int(admin[query.Stats](t, f.ingress, "/stats").LostCalls))
}

// whenever a dispatcher is killed, no call is missing that the upstream has seen. One may be booked as lost that its worker had no time to make,
// or of whose end it had none to tell.
func TestDispatcherKilledAtAnyTime(t *testing.T) {
	t.Parallel()
	const clients, before, after, most = 12, 200, 100, 800
	f := newFleet(t)
	f.start(t, "session-writer")
	f.start(t, "ingress")
	first := f.start(t, "dispatcher")
	f.upstream.Handle(echo)
	stop := make(chan struct{})
	wait := crowd(t.Context(), f.ingress, clients, most, stop)
	f.upstream.AwaitCount(t, before)
	first.End(t, syscall.SIGKILL)
	f.start(t, "dispatcher")
	f.upstream.AwaitCount(t, before+clients+after)
	close(stop)
	wait()

	seen := len(f.upstream.Requests())
	rows := settled(t, f.ingress, seen)
	distinct(t, rows)
	require.LessOrEqual(t, len(rows)-seen, clients, "at most one for each client")
	t.Logf("%d calls, %d in the ledger, %d of them lost", seen, len(rows), count(rows, "lost"))
}

// a session writer that is killed, and is away for a while, costs no call and counts none twice.
func TestKilledSessionWriterLosesNoCall(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	writer := f.start(t, "session-writer")
	f.start(t, "ingress")
	f.start(t, "dispatcher")
	f.upstream.Handle(fakellm.Talk("hello"))
	const many, few = 60, 20
	for range 2 {
		before := len(f.upstream.Requests())
		answers := f.ask(t.Context(), many)
		f.upstream.AwaitCount(t, before+many/2)
		writer.End(t, syscall.SIGKILL)
		answers()
		f.ask(t.Context(), few)() // while it is away
		writer = f.start(t, "session-writer")
	}
	seen := f.upstream.Requests()
	require.Len(t, seen, 2*(many+few))
	rows := settled(t, f.ingress, len(seen))
	require.Len(t, rows, len(seen))
	distinct(t, rows)
	require.Equal(t, len(seen), count(rows, "success"))
	stats := admin[query.Stats](t, f.ingress, "/stats")
	require.Equal(t, int64(len(seen)), stats.TotalRequests)
	whole := int64(0) // answers that are no streams, which tell 3 and 2 tokens
	for _, r := range seen {
		if !r.Streams() {
			whole++
		}
	}
	require.Equal(t, 5*whole, stats.TotalTokens)
	require.InDelta(t, float64(whole)*(3*1+2*2)/1e6, *stats.TotalCost, 1e-12)
}

// a gateway in one process is killed while calls hang and others come and go. What its ledger had shown is there after the next start, with the
// calls that hang as what has begun, and it goes on.
//
// That a call is told within 20 ms is tested with a clock that is the test's own; how long the system then takes is a matter of the machine. So nothing
// here depends on time: "a while before the kill" is until the ledger shows a call. Of the rest it is only told how many are missing, and how old.
func TestKilledGatewayKnowsWhatItAskedFor(t *testing.T) {
	t.Parallel()
	const hanging, clients, more, most = 30, 8, 200, 800
	binary, dir, addr := processtest.AllInOne(t), t.TempDir(), freeport.Addr(t)
	upstream := fakellm.Start(t)
	upstream.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.NoAnswer() })
	env := append(alone(t, dir, addr, upstream.URL()), "ADMIN_API_KEY="+adminKey)
	w := processtest.Run(t, binary, env)
	w.AwaitReady(t, addr)
	hang := (&fleet{ingress: addr}).ask(t.Context(), hanging)
	await.True(t, func() bool { return count(calls(t, addr), "begun") == hanging })

	upstream.Handle(echo)
	stop := make(chan struct{})
	wait := crowd(t.Context(), addr, clients, most, stop)
	var shown []query.Call
	await.True(t, func() bool {
		shown = calls(t, addr)
		return len(shown) >= more
	})
	killedAt := time.Now()
	w.End(t, syscall.SIGKILL)
	close(stop)
	wait()
	hang()
	seen := upstream.Requests()

	w = processtest.Run(t, binary, env)
	w.AwaitReady(t, addr)
	require.Equal(t, http.StatusOK, client{base: "http://" + addr + "/v1"}.ask(t, "m").status)
	var rows []query.Call
	await.True(t, func() bool {
		rows = calls(t, addr)
		return slices.ContainsFunc(rows, func(c query.Call) bool { return c.CreatedAt.After(killedAt) && c.Outcome == "success" })
	}, "it goes on")
	distinct(t, rows)
	require.LessOrEqual(t, len(rows), len(seen)+1)
	after := map[string]query.Call{}
	for _, r := range rows {
		after[r.RequestID] = r
	}
	for _, before := range shown {
		now, ok := after[before.RequestID]
		require.True(t, ok, "%+v", before)
		if before.Outcome != "begun" { // the end may have been told, and not been stored yet
			require.Equal(t, before, now)
		}
	}
	require.GreaterOrEqual(t, count(rows, "begun"), hanging, "their time is not over")
	if missing := len(seen) + 1 - len(rows); missing > 0 {
		t.Logf("%d of %d calls are not in the ledger, or not yet: the first of the last %d began %s before the kill", missing, len(seen), missing,
			killedAt.Sub(seen[len(seen)-missing].At).Round(time.Millisecond))
	}
}

package dispatcher_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

// each request is answered once and leaves one usage fact.
func TestEachRequestIsAnsweredAndRecordedOnce(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.start("d", p.oneUpstream(""))
	const requests = 40
	for i := range requests {
		p.ask(fmt.Sprint("r", i), []string{plainBody, streamBody}[i%2])
	}
	for i := range requests {
		rid := fmt.Sprint("r", i)
		got := p.await(rid)
		require.Equal(t, http.StatusOK, got.status)
		require.Equal(t, contract.OutcomeSuccess, got.outcome)
		require.Equal(t, uint64(1), got.delivery)
		require.Equal(t, "u", got.header["X-Gateway-Upstream"])
		u := p.facts.await(rid)
		require.Equal(t, "success", u.Status)
		require.Equal(t, i%2 == 1, u.Stream)
		require.Len(t, u.Attempts, 1)
		require.Equal(t, "real", u.UpstreamModel)
	}
	p.settled()
	for i := range requests {
		require.Equal(t, 1, p.facts.count(fmt.Sprint("r", i)))
		require.Empty(t, p.fencedDeliveries(fmt.Sprint("r", i)), "a first delivery asks nobody")
	}
	require.Len(t, p.upstream.Requests(), requests+1)
}

// loseOnce takes the requests that are asked meanwhile as a worker that dies: they come back with another delivery count.
func (p *pipeline) loseOnce(asked func()) {
	p.t.Helper()
	var taken sync.WaitGroup
	taken.Add(1)
	c, err := p.bus.ConsumeWork(p.t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 1}, func(_ context.Context, w *bus.Work) {
		w.Retry(time.Second / 2)
		taken.Done()
	})
	require.NoError(p.t, err)
	asked()
	taken.Wait()
	startstoptest.Stop(p.t, c)
}

// Delivery rule 3, section 19 scenario 22: before a redelivery is run, the ingress is asked. No answer twice, no needless upstream call,
// and the ledger knows of the lost delivery.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		verdict contract.FenceDecision // "" = nobody answers
		runs    bool
	}{
		"nothing is committed":             {verdict: contract.FenceRun, runs: true},
		"committed, or the client is gone": {verdict: contract.FenceStop},
		"the ingress is gone":              {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t)
			if tt.verdict != "" {
				p = setup(t)
				p.verdicts["r"] = tt.verdict
			}
			p.loseOnce(func() {
				p.ask("r", streamBody)
			})
			p.start("d", p.oneUpstream(""))
			u := p.facts.await("r")
			require.Equal(t, contract.CallLost, u.Attempts[0].Outcome)
			if tt.runs {
				got := p.await("r")
				require.Equal(t, uint64(2), got.delivery)
				require.Contains(t, got.body, "hello ")
				require.Equal(t, "success", u.Status)
				require.Len(t, u.Attempts, 2)
				require.Len(t, p.upstream.Requests(), 1)
			} else {
				require.Equal(t, received{}, p.now("r"))
				require.Equal(t, "error: SERVICE_UNAVAILABLE", u.Status)
				require.Len(t, u.Attempts, 1)
				require.Empty(t, p.upstream.Requests())
			}
			if tt.verdict != "" {
				require.Equal(t, []uint64{2}, p.fencedDeliveries("r"))
				p.settled()
				require.Equal(t, 1, p.facts.count("r"))
			}
		})
	}
}

// deliveries that were lost count against the hop budget, so that a request which kills its workers is given up.
func TestRequestThatKillsItsWorkers(t *testing.T) {
	t.Parallel()
	p := setup(t)
	var lost sync.WaitGroup
	lost.Add(3)
	c, err := p.bus.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 1}, func(_ context.Context, w *bus.Work) {
		w.Retry(time.Second / 5)
		lost.Done()
	})
	require.NoError(t, err)
	p.ask("r", plainBody)
	lost.Wait()
	startstoptest.Stop(t, c)
	p.start("d", p.oneUpstream(""))
	got := p.await("r")
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Contains(t, got.body, "all upstreams failed")
	require.Empty(t, p.upstream.Requests())
	var gone []uint64
	made := p.facts.await("r").Attempts
	for _, a := range made[:3] {
		require.Equal(t, contract.CallLost, a.Outcome)
		gone = append(gone, a.Delivery)
	}
	require.Equal(t, []uint64{1, 2, 3}, gone)
	require.Equal(t, []contract.Attempt{{Delivery: 4, Ordinal: 1, Outcome: contract.CallNone}}, made[3:], "no call was made")
}

// The ingress has answered 503 by the time a late request comes: it is dropped, and nobody pays for it.
func TestLateRequestIsDropped(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.ask("late", plainBody, func(r *contract.Request) { r.StartBy = time.Now().Add(-time.Millisecond) })
	p.start("d", p.oneUpstream(""))
	p.settled()
	require.Equal(t, received{}, p.now("late"))
	require.Zero(t, p.facts.count("late"))
	require.Len(t, p.upstream.Requests(), 1)
}

// a client that left before its request came to a dispatcher costs no upstream call.
func TestCancelledBeforeItsArrival(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.start("d", p.oneUpstream("max_concurrency: 1"))
	require.NoError(t, p.bus.Cancel("r"))
	p.status() // the cancellation has arrived before this query
	p.ask("r", streamBody)
	u := p.facts.await("r")
	require.Equal(t, "cancelled", u.Status)
	require.Equal(t, received{}, p.now("r"))
	p.settled()
	require.Len(t, p.upstream.Requests(), 1)
	require.Zero(t, p.status().Circuits["u"].Failures)
}

// R-012, CXL-01, CB-03: a client that leaves ends the upstream call, which would go on for ever, frees the slot, and is nobody's failure.
func TestCancelledAfterItsArrival(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]fakellm.Answer{
		"before the headers": fakellm.NoAnswer(),
		"before the content": fakellm.Stream("x").First(1, fakellm.Hang),
		"after content":      fakellm.Stream("x", "y").First(2, fakellm.Hang),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			p.start("d", p.oneUpstream("max_concurrency: 1"))
			p.upstream.Queue(answer)
			p.ask("r", streamBody)
			p.upstream.AwaitCount(t, 1)
			if name == "after content" {
				await.True(t, func() bool { return strings.Contains(p.now("r").body, `"x"`) })
			}
			require.NoError(t, p.bus.Cancel("r"))
			p.upstream.Await(t, func(r []fakellm.Request) bool { return !r[0].Left.IsZero() })
			require.Equal(t, "cancelled", p.facts.await("r").Status)
			p.settled()
			s := p.status()
			require.Zero(t, s.Slots[0].Active)
			require.Zero(t, s.Circuits["u"].Failures)
			require.NotContains(t, p.now("r").body, "error")
			require.NotContains(t, p.now("r").body, "[DONE]")
		})
	}
}

// Delivery rule 8, section 19 scenario 30: a dispatcher that has to stop hands back what is not committed, another one answers it, and what
// is committed ends in sight of the client.
func TestStopHandsBack(t *testing.T) {
	t.Parallel()
	p := setup(t)
	first := p.start("first", p.oneUpstream("max_concurrency: 3"))
	p.upstream.Queue(fakellm.Stream("x", "y").First(2, fakellm.Hang), fakellm.NoAnswer(), fakellm.Stream("z").First(1, fakellm.Hang))
	p.ask("committed", streamBody)
	await.True(t, func() bool { return strings.Contains(p.now("committed").body, `"x"`) })
	p.ask("silent", plainBody)
	p.ask("held", streamBody)
	p.upstream.AwaitCount(t, 3)
	p.start("second", p.oneUpstream("max_concurrency: 3"))

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, first.Stop(ctx), context.DeadlineExceeded)

	got := p.await("committed")
	require.Equal(t, contract.OutcomeError, got.outcome)
	require.Equal(t, 1, strings.Count(got.body, `data: {"error":`))
	require.NotContains(t, got.body, "[DONE]")
	for _, rid := range []string{"silent", "held"} {
		got := p.await(rid)
		require.Equal(t, uint64(2), got.delivery)
		require.Equal(t, contract.OutcomeSuccess, got.outcome)
		require.Equal(t, []uint64{2}, p.fencedDeliveries(rid))
		require.Equal(t, "success", p.facts.await(rid).Status)
	}
	p.facts.await("committed")
	p.settled()
	for _, rid := range []string{"committed", "silent", "held"} {
		require.Equal(t, 1, p.facts.count(rid), rid)
	}
	// the calls that it gave up are in the ledger too.
	for _, rid := range []string{"silent", "held"} {
		require.Equal(t, []contract.Outcome{contract.CallCancelled}, p.facts.handedBack(rid), rid)
	}
	require.Len(t, p.upstream.Requests(), 6)
}

// A stop without haste lets requests finish and takes no more.
func TestStopWaits(t *testing.T) {
	t.Parallel()
	p := setup(t)
	first := p.start("first", p.oneUpstream(""))
	p.upstream.Queue(fakellm.Stream("x", "y").Gap(50 * time.Millisecond))
	p.ask("running", streamBody)
	p.upstream.AwaitCount(t, 1)
	startstoptest.Stop(t, first)
	got := p.await("running")
	require.Equal(t, contract.OutcomeSuccess, got.outcome)
	require.Equal(t, "success", p.facts.await("running").Status)
	p.ask("next", plainBody)
	p.start("second", p.oneUpstream(""))
	require.Equal(t, contract.OutcomeSuccess, p.await("next").outcome)
	require.Empty(t, p.fencedDeliveries("running"))
}

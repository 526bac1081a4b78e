package dispatcher_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/services/dispatcher/internal/slot/slottest"
	"hydrallm/shared/contract"
	"hydrallm/shared/dispatcherhealth"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/startstoptest"
)

// fleet is the dispatchers that show themselves.
type fleet struct {
	p      *pipeline
	health *dispatcherhealth.Follower
}

// watch follows the dispatchers.
func (p *pipeline) watch() fleet {
	p.t.Helper()
	health, err := dispatcherhealth.Follow(p.t.Context(), p.bus, nil)
	require.NoError(p.t, err)
	p.t.Cleanup(health.Stop)
	return fleet{p, health}
}

// await waits until so many dispatchers are listed and ok accepts the status of each.
func (f fleet) await(dispatchers int, ok func(query.Status) bool) {
	f.p.t.Helper()
	await.True(f.p.t, func() bool {
		all := query.GetStatus.AskEach(f.p.t.Context(), f.p.bus, f.health.Dispatchers(), query.None{})
		for _, r := range all {
			if r.Err != nil || !ok(r.Answer) {
				return false
			}
		}
		return len(all) == dispatchers
	})
}

// A dispatcher is on the list while it runs.
func TestDispatchersAreListed(t *testing.T) {
	t.Parallel()
	p := setup(t)
	all := p.watch()
	first := p.start("first", p.oneUpstream(""))
	p.start("second", p.oneUpstream(""))
	all.await(2, func(s query.Status) bool { return s.Circuits["u"].State == "closed" })
	startstoptest.Stop(t, first)
	all.await(1, func(query.Status) bool { return true })
}

// an upstream that one dispatcher found to be down is called by none, not even by one that starts later.
func TestOpeningsAreShared(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.Error(http.StatusInternalServerError, "down") })
	all := p.watch()
	first := p.start("first", p.oneUpstream(""))
	second := p.start("second", p.oneUpstream(""))
	const enough = 5 // one of two dispatchers gets three of them
	for i := range enough {
		rid := fmt.Sprint("r", i)
		p.ask(rid, plainBody)
		require.Equal(t, http.StatusServiceUnavailable, p.await(rid).status)
	}
	open := func(s query.Status) bool { return s.Circuits["u"].State == "open" }
	all.await(2, open)
	calls := len(p.upstream.Requests())
	require.GreaterOrEqual(t, calls, 3)
	refused := func(from, to int) {
		t.Helper()
		for i := range to - from {
			rid := fmt.Sprint("x", from+i)
			p.ask(rid, plainBody)
			got := p.await(rid)
			require.Equal(t, http.StatusServiceUnavailable, got.status)
			require.NotEmpty(t, got.header["Retry-After"])
			require.Contains(t, got.body, "all upstreams failed")
		}
		require.Len(t, p.upstream.Requests(), calls, "an open channel sees no connection")
	}
	refused(0, 10)
	startstoptest.Stop(t, first)
	startstoptest.Stop(t, second)
	p.start("third", p.oneUpstream(""))
	all.await(1, open)
	refused(10, 12)
}

// the limit holds over two dispatchers and both names of the model, exactly, and the slots come back.
func TestSlotsOverTwoDispatchers(t *testing.T) {
	t.Parallel()
	const limit, requests = 3, 30
	p := setup(t)
	all := p.watch()
	for _, id := range []string{"first", "second"} {
		p.start(id, strings.Replace(p.oneUpstream(fmt.Sprint("max_concurrency: ", limit)), "id: p,", fmt.Sprintf("id: p, max_concurrency: %d,", limit), 1))
	}
	direct := func(r *contract.Request) {
		r.Model = "p/real"
		r.Decision = &contract.Decision{Provider: "p", Model: "real", Reason: contract.ReasonModelHint, PinProvider: true, PinModel: true}
	}
	for round := range 3 {
		release := make(chan struct{})
		p.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
			<-release
			return fakellm.Talk("hello world")(r)
		})
		outcomes := map[string]int{}
		rid := func(i int) string { return fmt.Sprintf("r%d-%d", round, i) }
		for i := range requests {
			var name []func(*contract.Request)
			if i%3 == 0 {
				name = append(name, direct)
			}
			p.ask(rid(i), []string{plainBody, streamBody}[i%2], name...)
		}
		await.True(t, func() bool {
			ended := 0
			for i := range requests {
				if p.now(rid(i)).outcome != "" {
					ended++
				}
			}
			return ended == requests-limit && p.upstream.Active() == limit
		})
		close(release)
		for i := range requests {
			got := p.await(rid(i))
			outcomes[got.outcome]++
			if got.outcome == contract.OutcomeError {
				require.Equal(t, http.StatusServiceUnavailable, got.status)
				require.Contains(t, got.body, "all upstreams busy")
			}
		}
		require.Equal(t, map[string]int{contract.OutcomeSuccess: limit, contract.OutcomeError: requests - limit}, outcomes)
		all.await(2, func(s query.Status) bool { return len(s.Slots) == 0 || s.Slots[0].Active == 0 })
	}
	require.Equal(t, limit, p.upstream.MaxActive())
}

// R-145, section 19 scenario 23: the slots of a dispatcher that dies come back.
func TestSlotsOfADeadDispatcher(t *testing.T) {
	t.Parallel()
	p := setup(t)
	bucket, err := p.connect().Bucket(t.Context(), subject.SlotsBucket)
	require.NoError(t, err)
	lifeline := &slottest.Cuttable{KV: dispatcher.NewStore(bucket)}
	dead := slot.NewShared(t.Context(), lifeline, slot.Config{Owner: "dead", TTL: 10 * time.Second}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { require.Error(t, dead.Close(t.Context())) })
	_, _, err = dead.Acquire(t.Context(), []slot.Candidate{{ID: "p/real", Limit: 1}}, nil)
	require.NoError(t, err)
	p.start("d", p.oneUpstream("max_concurrency: 1"))

	p.ask("before", plainBody)
	require.Contains(t, p.await("before").body, "all upstreams busy")
	lifeline.Cut(true)
	n := 0
	await.True(t, func() bool {
		n++
		rid := fmt.Sprint("after", n)
		p.ask(rid, plainBody)
		return p.await(rid).outcome == contract.OutcomeSuccess
	})
	require.Len(t, p.upstream.Requests(), 1)
}

// two dispatchers give a dialogue one id.
func TestDialoguesOverTwoDispatchers(t *testing.T) {
	t.Parallel()
	p := setup(t)
	text := strings.Replace(p.oneUpstream(""), "id: p,", "id: p, session_header: X-Session,", 1)
	for _, id := range []string{"first", "second"} {
		p.start(id, text)
	}
	const requests = 40
	for i := range requests { // turns of one dialogue at the same time
		p.ask(fmt.Sprint("r", i), fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"%d"}]}`, i))
	}
	for i := range requests {
		require.Equal(t, contract.OutcomeSuccess, p.await(fmt.Sprint("r", i)).outcome)
	}
	ids := map[string]bool{}
	for _, r := range p.upstream.Requests() {
		ids[r.Header.Get("X-Session")] = true
	}
	require.Len(t, ids, 1)
	require.NotContains(t, ids, "")
}

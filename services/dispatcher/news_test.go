package dispatcher_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/startstoptest"
)

const (
	refusedKey = "key-a-which-is-refused-12"
	goodKey    = "key-b-which-is-good-12345"
)

// pooled serves "m" by a provider with these keys, and its models by their own names.
func (p *pipeline) pooled(keys ...string) string {
	return fmt.Sprintf(`
server: {admin_key: %s}
providers: [{id: p, url: "%s/v1", keys: [%s]}]
upstreams: [{id: u, provider: p, model: real}]
models: [{name: m, upstreams: [u]}]
`, adminKey, p.upstream.URL(), strings.Join(keys, ", "))
}

// guarded serves "m" by an upstream whose circuit is open for five minutes.
func (p *pipeline) guarded(url, key string) string {
	return fmt.Sprintf(`
providers: [{id: p, url: "%s/v1", key: %s}]
upstreams: [{id: u, provider: p, model: real}]
models: [{name: m, upstreams: [u]}]
resilience: {breaker: {channel: {failures: 3, window: 5m, open_for: 300s, half_open: true}}}
`, url, key)
}

// onDisk gives what is kept over a restart.
func (p *pipeline) onDisk() map[string]map[string]any {
	p.t.Helper()
	bucket, err := p.bus.Bucket(p.t.Context(), subject.RestsBucket)
	require.NoError(p.t, err)
	all := map[string]map[string]any{}
	w, err := bucket.Watch(p.t.Context(), ">", func(e bus.Entry) {
		require.NotContains(p.t, string(e.Value), refusedKey)
		if e.Deleted {
			return
		}
		var v map[string]any
		require.NoError(p.t, json.Unmarshal(e.Value, &v))
		all[e.Key] = v
	})
	require.NoError(p.t, err)
	w.Stop()
	return all
}

// endsIn changes the end of everything on disk.
func (p *pipeline) endsIn(d time.Duration) {
	p.t.Helper()
	bucket, err := p.bus.Bucket(p.t.Context(), subject.RestsBucket)
	require.NoError(p.t, err)
	for key, v := range p.onDisk() {
		v["until"] = time.Now().Add(d)
		data, err := json.Marshal(v)
		require.NoError(p.t, err)
		_, err = bucket.Put(p.t.Context(), key, data)
		require.NoError(p.t, err)
	}
}

// refuse has the upstream answer calls with the refused key so, and others well.
func (p *pipeline) refuse(a fakellm.Answer) {
	p.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		if r.Key() == refusedKey {
			return a
		}
		return fakellm.Talk("hello world")(r)
	})
}

// calls counts the calls since the last count by key.
func (p *pipeline) calls(since *int) map[string]int {
	all := p.upstream.Requests()
	counts := map[string]int{}
	for _, r := range all[*since:] {
		counts[r.Key()]++
	}
	*since = len(all)
	return counts
}

// askTimes asks one by one, and wants each request answered.
func (p *pipeline) askTimes(prefix string, n int, change ...func(*contract.Request)) {
	p.t.Helper()
	for i := range n {
		rid := fmt.Sprint(prefix, i)
		p.ask(rid, plainBody, change...)
		require.Equal(p.t, http.StatusOK, p.await(rid).status)
	}
}

// a long rest of a key is known after a restart, wherever the key stands by then; a key that took its place does not rest.
func TestRestsOutlastARestart(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.refuse(fakellm.Answer{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "3000"}})
	first := p.start("d", p.pooled(refusedKey, goodKey))
	seen := 0
	for i := 0; p.calls(new(int))[refusedKey] == 0; i++ {
		p.askTimes(fmt.Sprint("first", i), 1)
	}
	p.eventually(func() bool { return len(p.onDisk()) == 1 })
	startstoptest.Stop(t, first)
	p.calls(&seen)

	const enough = 40 // for each of three keys to be called
	second := p.start("d", p.pooled("key-c-which-is-new-123456", goodKey, refusedKey))
	p.askTimes("second", enough)
	calls := p.calls(&seen)
	require.Zero(t, calls[refusedKey])
	require.Len(t, calls, 2)
	startstoptest.Stop(t, second)

	third := p.start("d", p.pooled("key-c-which-is-new-123456", goodKey))
	p.askTimes("third", enough)
	require.Len(t, p.calls(&seen), 2, "the one in the place of the refused key is called")
	startstoptest.Stop(t, third)

	// What is over is as if it had never been, and is removed. So is what nobody can read.
	p.endsIn(-2 * time.Minute)
	bucket, err := p.bus.Bucket(t.Context(), subject.RestsBucket)
	require.NoError(t, err)
	_, err = bucket.Put(t.Context(), "circuit.00", []byte("[]"))
	require.NoError(t, err)
	p.upstream.Handle(fakellm.Talk("hello world"))
	p.start("d", p.pooled(refusedKey, goodKey))
	p.askTimes("fourth", enough)
	require.Len(t, p.calls(&seen), 2)
	p.eventually(func() bool {
		keys := 0
		w, err := bucket.Watch(t.Context(), ">", func(e bus.Entry) {
			if !e.Deleted {
				keys++
			}
		})
		require.NoError(t, err)
		w.Stop()
		return keys == 0
	})
}

// a rest for one model is one for that model after a restart, also for dispatchers that start while the one that imposed it runs.
func TestRestsForAModelOutlastARestart(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.refuse(fakellm.Error(http.StatusForbidden, "no access to this model"))
	first := p.start("first", p.pooled(refusedKey))
	p.ask("r", plainBody)
	require.Equal(t, http.StatusFailedDependency, p.await("r").status)
	p.eventually(func() bool { return len(p.onDisk()) == 1 })

	p.start("second", p.pooled(refusedKey))
	all := p.watch()
	all.await(2, func(s query.Status) bool {
		k := s.KeyStatistics["p"].Keys
		return len(k) == 1 && len(k[0].Models) == 1 && k[0].Models[0] == "real"
	})
	startstoptest.Stop(t, first)
	p.upstream.Handle(fakellm.Talk("hello world"))
	p.ask("resting", plainBody)
	require.Equal(t, http.StatusFailedDependency, p.await("resting").status)
	p.askTimes("other", 1, func(r *contract.Request) {
		r.Model = "p/another"
		r.Decision = &contract.Decision{Provider: "p", Model: "another", Reason: contract.ReasonModelHint, PinProvider: true, PinModel: true}
	})
}

// a key that works again before its time is not kept from calls by a restart.
func TestRestsThatEndedAreForgotten(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.refuse(fakellm.Error(http.StatusUnauthorized, "unknown key"))
	first := p.start("d", p.pooled(refusedKey))
	p.ask("r", plainBody)
	require.Equal(t, http.StatusFailedDependency, p.await("r").status)
	p.eventually(func() bool { return len(p.onDisk()) == 1 })
	p.upstream.Handle(fakellm.Talk("hello world"))
	p.upstream.Offer("real")
	found, err := query.ProbeKeys.Ask(t.Context(), p.bus, query.Probe{Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, found.Recovered)
	startstoptest.Stop(t, first) // what is not told by now is told at the stop
	require.Empty(t, p.onDisk())
	p.start("d", p.pooled(refusedKey))
	p.askTimes("again", 1)
}

// a circuit that is open for long is open after a restart, until its end, when a probe decides. It says nothing of an upstream with
// another address or key.
func TestCircuitsOutlastARestart(t *testing.T) {
	t.Parallel()
	p := setup(t)
	all := p.watch()
	p.upstream.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.Error(http.StatusInternalServerError, "down") })
	config := p.guarded(p.upstream.URL(), goodKey)
	first := p.start("first", config)
	for i := range 3 {
		rid := fmt.Sprint("r", i)
		p.ask(rid, plainBody)
		require.Equal(t, http.StatusServiceUnavailable, p.await(rid).status)
	}
	p.eventually(func() bool { return len(p.onDisk()) == 1 })
	state := func(want string) func(query.Status) bool {
		return func(s query.Status) bool {
			c := s.Circuits["u"]
			return c.State == want && (want != "open" || c.Remaining > 4*time.Minute)
		}
	}
	second := p.start("second", config) // while the first one has not stopped
	all.await(2, state("open"))
	startstoptest.Stop(t, first)
	startstoptest.Stop(t, second)
	seen := len(p.upstream.Requests())

	var starting time.Duration // at most
	for name, other := range map[string]string{"address": p.guarded("http://127.0.0.1:1", goodKey), "key": p.guarded(p.upstream.URL(), refusedKey)} {
		begun := time.Now()
		d := p.start("other"+name, other)
		starting = max(starting, time.Since(begun))
		all.await(1, state("closed"))
		startstoptest.Stop(t, d)
	}

	p.endsIn(2*time.Second + 10*starting) // the next one has to know of it before it is over
	p.upstream.Handle(fakellm.Talk("hello world"))
	p.start("third", config)
	all.await(1, state("half-open"))
	require.Len(t, p.upstream.Requests(), seen)
	p.askTimes("probe", 1)
	all.await(1, state("closed"))
	p.eventually(func() bool { return len(p.onDisk()) == 0 })
}

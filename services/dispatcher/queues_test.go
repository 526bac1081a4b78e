package dispatcher_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

// queued serves the model "m" by one upstream with so many slots, with a queue of this length.
func (p *pipeline) queued(slots, length int, wait time.Duration) string {
	text := p.oneUpstream(fmt.Sprint("max_concurrency: ", slots))
	return strings.Replace(text, "upstreams: [u]}", fmt.Sprintf("upstreams: [u], queue: {length: %d, wait: %s}}", length, wait), 1)
}

// held has the upstream answer once it is told so for each call. asked gives what was asked for, in the order of the calls.
func (p *pipeline) held() (release chan struct{}, asked func() []string) {
	release = make(chan struct{})
	p.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		<-release
		return fakellm.Talk("hello world")(r)
	})
	return release, func() []string {
		var all []string
		for _, r := range p.upstream.Requests() {
			all = append(all, gjson.GetBytes(r.Body, "messages.0.content").Str)
		}
		return all
	}
}

// question is a body that asks the name of the request.
func question(rid string) string {
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, rid)
}

// arrived is a request that came to the gateway at a time, with a priority.
func arrived(at time.Time, p contract.Priority) func(*contract.Request) {
	return func(r *contract.Request) { r.ReceivedAt, r.Priority = at, p }
}

// waiting waits until both dispatchers know that so many requests wait.
func (f fleet) waiting(dispatchers, n int) {
	f.p.t.Helper()
	f.await(dispatchers, func(s query.Status) bool { return len(s.Queues) == 1 && s.Queues[0].Waiting == n })
}

// requests that two dispatchers have are served in one order, by priority and then as they came, one after the other.
func TestQueueOverTwoDispatchers(t *testing.T) {
	t.Parallel()
	p := setup(t)
	all := p.watch()
	for _, id := range []string{"first", "second"} {
		p.start(id, p.queued(1, 100, time.Hour))
	}
	release, asked := p.held()
	begin := time.Now()
	p.ask("r", question("r"))
	await.True(t, func() bool { return p.upstream.Active() == 1 })
	want := []string{"r"}
	priorities := []contract.Priority{contract.PriorityHigh, contract.PriorityNormal, contract.PriorityLow}
	const each = 6
	for i := range each * len(priorities) {
		p.ask(fmt.Sprint("r", i), question(fmt.Sprint("r", i)), arrived(begin.Add(time.Duration(i)*time.Second), priorities[i%3]))
		all.waiting(2, i+1)
	}
	for n := range priorities {
		for i := range each {
			want = append(want, fmt.Sprint("r", 3*i+n))
		}
	}
	all.await(2, func(s query.Status) bool {
		q := s.Queues[0]
		return q.Model == "m" && q.Length == 100 && len(q.Requests) == 18 && q.Requests[6].RequestID == "r1" && q.Requests[6].Position == 7 &&
			q.Requests[6].Priority == "normal" && q.Requests[6].Since.Equal(begin.Add(time.Second).Truncate(time.Millisecond))
	})
	for range want {
		release <- struct{}{}
	}
	for _, rid := range want {
		require.Equal(t, contract.OutcomeSuccess, p.await(rid).outcome)
	}
	require.Equal(t, want, asked())
	require.Equal(t, 1, p.upstream.MaxActive())
	all.waiting(2, 0)
}

// what finds the queue full, and what has waited long enough, is refused; a client that leaves makes room, and gets no call.
func TestQueueIsFull(t *testing.T) {
	t.Parallel()
	p := setup(t)
	all := p.watch()
	p.start("d", p.queued(1, 2, time.Hour))
	release, asked := p.held()
	p.ask("a", question("a"))
	await.True(t, func() bool { return p.upstream.Active() == 1 })
	p.ask("b", question("b"))
	all.waiting(1, 1)
	p.ask("c", question("c"))
	all.waiting(1, 2)
	p.ask("d", question("d"))
	got := p.await("d")
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Equal(t, "all_upstreams_busy", gjson.Get(got.body, "error.code").Str)
	require.Contains(t, got.body, "2 requests wait")
	require.NotEmpty(t, got.header["Retry-After"])

	require.NoError(t, p.bus.Cancel("b"))
	all.waiting(1, 1)
	p.ask("e", question("e"))
	all.waiting(1, 2)
	for range 3 {
		release <- struct{}{}
	}
	for _, rid := range []string{"a", "c", "e"} {
		require.Equal(t, contract.OutcomeSuccess, p.await(rid).outcome)
	}
	require.Equal(t, []string{"a", "c", "e"}, asked())
}

// a request waits no longer than the queue allows.
func TestQueueTakesTooLong(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.start("d", p.queued(1, 2, time.Millisecond))
	release, asked := p.held()
	p.ask("a", question("a"))
	await.True(t, func() bool { return p.upstream.Active() == 1 })
	p.ask("b", question("b"))
	got := p.await("b")
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Equal(t, "all_upstreams_busy", gjson.Get(got.body, "error.code").Str)
	require.Contains(t, got.body, "as long as a request waits")
	require.Equal(t, "1", got.header["Retry-After"])
	release <- struct{}{}
	require.Equal(t, contract.OutcomeSuccess, p.await("a").outcome)
	require.Equal(t, []string{"a"}, asked())
}

// requests that wait at a dispatcher which stops go on at another one, in their order, and nothing counts as lost.
func TestQueueOfADispatcherThatStops(t *testing.T) {
	t.Parallel()
	const requests = 12
	p := setup(t)
	all := p.watch()
	first := p.start("first", p.queued(1, 100, time.Hour))
	release, asked := p.held()
	begin := time.Now()
	want := []string{"r"}
	p.ask("r", question("r"))
	await.True(t, func() bool { return p.upstream.Active() == 1 })
	for i := range requests {
		rid := fmt.Sprint("r", i)
		p.ask(rid, question(rid), arrived(begin.Add(time.Duration(i)*time.Second), ""))
		want = append(want, rid)
	}
	all.waiting(1, requests)
	p.start("second", p.queued(1, 100, time.Hour))
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		stopped <- first.Stop(ctx)
	}()
	all.waiting(1, requests)
	for range want {
		release <- struct{}{}
	}
	require.NoError(t, await.Value(t, stopped))
	for _, rid := range want {
		require.Equal(t, contract.OutcomeSuccess, p.await(rid).outcome)
	}
	require.Equal(t, want, asked())
}

// a request that waited at a dispatcher which died is before those that came later, and gets its place at the one that has it next.
func TestQueueOfADeadDispatcher(t *testing.T) {
	t.Parallel()
	p := setup(t)
	all := p.watch()
	p.start("d", p.queued(1, 100, time.Hour))
	release, asked := p.held()
	begin := time.Now()
	bucket, err := p.connect().Bucket(t.Context(), subject.QueueBucket)
	require.NoError(t, err)
	entry := fmt.Sprintf(`{"model":"m","since":%d,"rank":%d,"owner":"dead"}`, begin.UnixMilli(), begin.UnixMilli())
	renew := func() {
		_, err := bucket.Put(t.Context(), "a", []byte(entry))
		require.NoError(t, err)
	}
	renew()
	all.waiting(1, 1)
	p.ask("b", question("b"), arrived(begin.Add(time.Second), ""))
	all.await(1, func(s query.Status) bool {
		renew()
		return s.Queues[0].Waiting == 2 && s.Queues[0].Requests[0].RequestID == "a"
	})
	require.Empty(t, asked(), "it must not be passed by")
	p.ask("a", question("a"), arrived(begin, ""))
	for range 2 {
		release <- struct{}{}
	}
	for _, rid := range []string{"a", "b"} {
		require.Equal(t, contract.OutcomeSuccess, p.await(rid).outcome)
	}
	require.Equal(t, []string{"a", "b"}, asked())
}

// under load slots stay exact, and every request is answered.
func TestQueueUnderLoad(t *testing.T) {
	t.Parallel()
	const slots, requests = 3, 60
	p := setup(t)
	all := p.watch()
	for _, id := range []string{"first", "second"} {
		p.start(id, p.queued(slots, requests, time.Hour))
	}
	release, asked := p.held()
	for i := range requests {
		p.ask(fmt.Sprint("r", i), question(fmt.Sprint("r", i)))
	}
	all.waiting(2, requests-slots)
	close(release)
	for i := range requests {
		require.Equal(t, contract.OutcomeSuccess, p.await(fmt.Sprint("r", i)).outcome)
	}
	require.Len(t, asked(), requests)
	require.LessOrEqual(t, p.upstream.MaxActive(), slots)
	all.await(2, func(s query.Status) bool { return s.Queues[0].Waiting == 0 && s.Slots[0].Active == 0 })
}

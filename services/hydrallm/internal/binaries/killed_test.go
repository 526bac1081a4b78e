package binaries

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

// answered is what one client got.
type answered struct {
	status int
	body   string
	err    error
}

// ask sends n requests at the same time, every second one for a stream, and gives the answers when all are there.
func (f *fleet) ask(ctx context.Context, n int) func() []answered {
	tr := &http.Transport{MaxIdleConnsPerHost: n}
	client := &http.Client{Transport: tr}
	answers := make([]answered, n)
	var asking sync.WaitGroup
	for i := range answers {
		asking.Go(func() { answers[i] = askOnce(ctx, client, f.ingress, "m", i) })
	}
	return func() []answered {
		asking.Wait()
		tr.CloseIdleConnections()
		return answers
	}
}

func askOnce(ctx context.Context, client *http.Client, addr, model string, i int) (a answered) {
	body := fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":"question %d"}]}`, model, i%2 == 0, i)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return answered{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return answered{err: err}
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(resp.Body)
	return answered{status: resp.StatusCode, body: string(data), err: err}
}

// echo answers with the question, so that a mixed-up answer is seen.
func echo(r fakellm.Request) fakellm.Answer {
	_, rest, _ := strings.Cut(string(r.Body), `"content":"`)
	question, _, _ := strings.Cut(rest, `"`)
	return fakellm.Talk("answer to:" + question)(r)
}

// Delivery rules 3 and 8: a dispatcher that is killed with 200 requests that have not begun to stream loses none of them. Another one
// answers every client, each with its own answer.
func TestKilledDispatcherLosesNothing(t *testing.T) {
	t.Parallel()
	const clients = 200
	f := newFleet(t)
	f.start(t, "analyzer")
	f.start(t, "ingress")
	first := f.start(t, "dispatcher")
	var killed atomic.Bool
	f.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		if killed.Load() {
			return echo(r)
		}
		return fakellm.NoAnswer()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	begun := time.Now()
	await := f.ask(ctx, clients)
	f.upstream.AwaitCount(t, clients)
	f.start(t, "dispatcher")
	killed.Store(true)
	first.End(t, syscall.SIGKILL)

	for i, a := range await() {
		require.NoError(t, a.err)
		require.Equal(t, http.StatusOK, a.status, a.body)
		if i%2 == 0 {
			require.Equal(t, 1, strings.Count(a.body, "data: [DONE]"), a.body)
			require.Contains(t, a.body, fmt.Sprintf(`"content":"%d"`, i))
		} else {
			require.Contains(t, a.body, fmt.Sprintf(`answer to:question %d"`, i))
		}
	}
	require.Len(t, f.upstream.Requests(), 2*clients, "each request is run once more, not twice")
	t.Logf("all %d clients have their answers after %s", clients, time.Since(begun).Round(time.Millisecond))
}

// totals is a piece of a stream whose upstream tells all the time what it has cost.
const totals = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"real","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}],` +
	`"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`

// the upstream calls of an ingress that is killed are cancelled soon, and booked as such, with the tokens that are known.
func TestKilledIngressCancelsItsCalls(t *testing.T) {
	t.Parallel()
	const clients = 10
	f := newFleet(t)
	facts := f.facts(t)
	f.start(t, "dispatcher")
	front := f.start(t, "ingress")
	f.upstream.Handle(func(fakellm.Request) fakellm.Answer {
		events := slices.Repeat([]any{totals}, 3000)
		return fakellm.SSE(events...).Gap(100 * time.Millisecond) // five minutes
	})
	answers := f.ask(t.Context(), clients)
	f.upstream.AwaitCount(t, clients)
	await.True(t, func() bool { return f.upstream.Active() == clients })
	begun := time.Now()
	front.End(t, syscall.SIGKILL)
	await.True(t, func() bool { return f.upstream.Active() == 0 })
	t.Logf("all calls have ended %s after the ingress", time.Since(begun).Round(time.Millisecond))
	for _, a := range answers() {
		require.Error(t, a.err)
	}
	for range clients {
		r := await.Value(t, facts)
		require.Equal(t, "cancelled", r.Status)
		require.Len(t, r.Attempts, 1)
		require.Equal(t, contract.CallCancelled, r.Attempts[0].Outcome)
		if r.Stream { // the others may have had no time to tell
			require.Equal(t, int64(6), r.Attempts[0].Total)
			require.Equal(t, int64(5*1000+1*2000), *r.Attempts[0].CostNanos)
		}
	}
	require.Len(t, f.upstream.Requests(), clients, "nobody asks again for a client that is gone")
}

// facts gives the records that the dispatchers write of requests that are over.
func (f *fleet) facts(t *testing.T) <-chan contract.RequestRecord {
	t.Helper()
	records := make(chan contract.RequestRecord, 64)
	cfg := bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 1, MaxWait: time.Millisecond}
	facts, err := bustest.Connect(t, f.nats).ConsumeFacts(t.Context(), cfg, func(_ context.Context, batch []bus.Fact) error {
		for _, fact := range batch {
			for line := range bytes.Lines(fact.Data) {
				if r, err := contract.ParseUsage(line); err == nil && fact.Subject == subject.UsageRecorded && r.Over() {
					records <- r
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	t.Cleanup(func() { startstoptest.Stop(t, facts) })
	return records
}

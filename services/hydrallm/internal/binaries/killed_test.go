package binaries

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
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
		asking.Go(func() { answers[i] = askOnce(ctx, client, f.ingress, i) })
	}
	return func() []answered {
		asking.Wait()
		tr.CloseIdleConnections()
		return answers
	}
}

func askOnce(ctx context.Context, client *http.Client, addr string, i int) (a answered) {
	body := fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":"question %d"}]}`, i%2 == 0, i)
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
	first.end(t, syscall.SIGKILL)

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

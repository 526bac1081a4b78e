package ingress_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/faultbus"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

// lostAnswers has every answer of the worker lost, until the proxy follows other rules.
var lostAnswers = faultbus.Rule{Subject: "hydra.v1.reply.>", Loss: 1}

// setupLossy is setup with a worker whose messages go through a proxy. The gateway has a server that is not in its process.
func setupLossy(t *testing.T) (g *gateway, lossy *faultbus.Proxy, url string) {
	t.Helper()
	url = natstest.StartListening(t).ClientURL()
	lossy = faultbus.Start(t, url, 1)
	return setupBetween(t, bustest.Dial(t, url), bustest.Dial(t, lossy.URL()), nil), lossy, url
}

// answers that a NATS server takes with it as a whole are sent again by their worker, which has long finished with them. No worker gets the
// request again.
func TestLostAnswersComeAgain(t *testing.T) {
	t.Parallel()
	g, lossy, _ := setupLossy(t)
	var calls atomic.Int64
	g.work(func(ctx context.Context, r *reply) {
		calls.Add(1)
		echo(ctx, r)
	})
	lossy.Follow(lostAnswers)
	const requests, messages = 20, 20/2*1 + 20/2*4 // an answer is one message, a stream of three events and its end are four
	var asking sync.WaitGroup
	for i := range requests {
		asking.Go(func() {
			body, want := chatBody, answerJSON
			if i%2 == 1 {
				body, want = streamBody, "data: one\n\ndata: two\n\ndata: [DONE]\n\n"
			}
			a, err := g.try(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
			if err != nil || a.StatusCode != http.StatusOK || a.body != want {
				t.Errorf("request %d: %v, %q", i, err, a.body)
			}
		})
	}
	await.True(t, func() bool { return lossy.Lost() >= messages }, "all answers are lost")
	lossy.Follow()
	asking.Wait()
	require.Equal(t, int64(requests), calls.Load())
}

// frames in the middle of a stream are sent again before the later ones.
func TestLostFramesOfAStreamComeAgain(t *testing.T) {
	t.Parallel()
	g, lossy, _ := setupLossy(t)
	begun, healed, more := make(chan struct{}), make(chan struct{}), make(chan struct{})
	g.work(func(ctx context.Context, r *reply) {
		_ = r.head("text/event-stream")
		_ = r.send(ctx, "data: 0\n\n")
		wait(ctx, begun)
		for i := range 5 {
			_ = r.send(ctx, fmt.Sprintf("data: %d\n\n", i+1))
		}
		wait(ctx, healed)
		_ = r.send(ctx, "data: 6\n\n") // leaves a gap
		wait(ctx, more)
		_ = r.send(ctx, "data: 7\n\n")
		_ = r.end()
	})
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/chat/completions", strings.NewReader(streamBody))
	require.NoError(t, err)
	resp, err := g.client.Do(req)
	require.NoError(t, err)
	in := bufio.NewScanner(resp.Body)
	next := 0
	for in.Scan() {
		if !strings.HasPrefix(in.Text(), "data: ") {
			continue
		}
		require.Equal(t, fmt.Sprintf("data: %d", next), in.Text())
		switch next {
		case 0:
			lossy.Follow(lostAnswers)
			close(begun)
			await.True(t, func() bool { return lossy.Lost() >= 5 }, "frames are lost")
			lossy.Follow()
			close(healed)
		case 6:
			close(more)
		}
		next++
	}
	require.NoError(t, in.Err())
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 8, next)
}

// wait waits until c is closed, or the worker is cut off.
func wait(ctx context.Context, c <-chan struct{}) {
	select {
	case <-c:
	case <-ctx.Done():
	}
}

// a request whose answer and whose acknowledgement are lost comes to another worker, which leaves it alone as long as the first one has the
// answer.
func TestALostAnswerIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	g, lossy, url := setupLossy(t)
	var calls atomic.Int64
	refused := make(chan struct{})
	work := func() {
		g.consume(bus.WorkConfig{Consumer: topology.Analyzer, Refused: func(context.Context, *bus.Work) { close(refused) }}, func(ctx context.Context, w *bus.Work) {
			r := &reply{Reply: w.OpenReply(), work: w, gone: ctx.Done()}
			defer r.Close()
			calls.Add(1)
			echo(ctx, r)
			w.Done()
		})
	}
	lossy.Follow(lostAnswers, faultbus.Rule{Subject: "$JS.ACK.>", Loss: 1})
	work()
	status := make(chan int, 1)
	go func() {
		a, err := g.try(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(chatBody))
		if err != nil {
			t.Error(err)
			a.Response = &http.Response{}
		}
		status <- a.StatusCode
	}()
	await.True(t, func() bool { return lossy.Lost() >= 2 }, "answer and acknowledgement are lost")
	g.worker = bustest.Dial(t, url)
	work()
	bustest.AwaitDeliveries(t, url, topology.Analyzer, 3)
	require.Equal(t, int64(1), calls.Load())
	lossy.Follow()
	require.Equal(t, http.StatusOK, await.Value(t, status))
	await.Value(t, refused) // by either of them
	require.Equal(t, int64(1), calls.Load())
}

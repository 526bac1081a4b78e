package ingress_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/ingress"
	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

const (
	headerKey      = "Idempotency-Key"
	headerReplayed = "Idempotent-Replayed"
)

// pair is two ingresses of one server.
func pair(t *testing.T, change func(*ingress.Config)) (first, second *gateway) {
	t.Helper()
	server := natstest.Start(t)
	config := func(id string) func(*ingress.Config) {
		return func(c *ingress.Config) {
			oneModel(c)
			c.ID = id
			if change != nil {
				change(c)
			}
		}
	}
	return setupOn(t, server, config("one")), setupOn(t, server, config("two"))
}

// counted has requests answered by handler, which is told the number of the request.
func (g *gateway) counted(handler func(ctx context.Context, n int64, r *reply)) *atomic.Int64 {
	g.t.Helper()
	count := &atomic.Int64{}
	g.answer(topology.Dispatcher, func(ctx context.Context, r *reply) { handler(ctx, count.Add(1), r) })
	return count
}

// talk answers request n in the shape that it asks for.
func talk(ctx context.Context, n int64, r *reply) {
	if !r.work.Request.Stream {
		_ = r.head("application/json")
		_ = r.Data(ctx, fmt.Appendf(nil, `{"n":%d}`, n))
	} else {
		_ = r.head("text/event-stream")
		for i := range 3 {
			_ = r.send(ctx, fmt.Sprintf("data: {\"n\":%d,\"i\":%d}\n\n", n, i))
		}
	}
	_ = r.end()
}

// refused answers with a status.
func (r *reply) refused(ctx context.Context, status int) {
	_ = r.Head(contract.Head{Status: status, Header: [][2]string{{"Content-Type", "application/json"}, {"X-Gateway-Attempts", "1"}}})
	_ = r.Data(ctx, fmt.Appendf(nil, `{"error":{"code":"%d"}}`, status))
	_ = r.End(contract.End{Outcome: contract.OutcomeError})
	_ = r.Flush()
}

// a request that is repeated gets the same answer at any ingress, with its headers and in its shape, and is not run again.
func TestRepeatedRequestGetsTheSameAnswer(t *testing.T) {
	t.Parallel()
	first, second := pair(t, nil)
	count := first.counted(talk)
	for name, request := range map[string]struct{ path, body string }{
		"chat":        {"/v1/chat/completions", chatBody},
		"stream":      {"/v1/chat/completions", streamBody},
		"messages":    {"/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`},
		"responses":   {pathResponses, `{"model":"m","input":"hi"}`},
		"live":        {pathResponses, `{"model":"m","input":"hi","stream":true}`},
		"completions": {"/v1/completions", `{"model":"m","prompt":"hi"}`},
		"embeddings":  {"/v1/embeddings", `{"model":"m","input":"hi"}`},
	} {
		key, before := name+strings.Repeat("~", 255-len(name)), count.Load()
		a := first.do(http.MethodPost, request.path, strings.NewReader(request.body), headerKey, key)
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		require.Contains(t, a.body, fmt.Sprintf(`"n":%d`, before+1))
		require.Empty(t, a.Header.Get(headerReplayed))
		for _, g := range []*gateway{second, first} {
			b := g.do(http.MethodPost, request.path, strings.NewReader(request.body), headerKey, key)
			require.Equal(t, http.StatusOK, b.StatusCode, b.body)
			require.Equal(t, a.body, b.body)
			require.Equal(t, "true", b.Header.Get(headerReplayed))
			for _, header := range []string{"Content-Type", "X-Gateway-Model", "Cache-Control"} {
				require.Equal(t, a.Header.Get(header), b.Header.Get(header), header)
			}
			require.NotEqual(t, a.Header.Get("X-Request-Id"), b.Header.Get("X-Request-Id"))
		}
		require.Equal(t, before+1, count.Load(), name)
	}
	before := count.Load()
	for range 2 {
		require.Empty(t, first.chat(chatBody).Header.Get(headerReplayed))
	}
	require.Equal(t, before+2, count.Load(), "without a key each is a request of its own")
}

// a key is for one request of one client to one operation.
func TestKeyIsForOneRequest(t *testing.T) {
	t.Parallel()
	first, second := pair(t, func(c *ingress.Config) { c.ClientKeys = []string{"sk-one", "sk-two"} })
	count := first.counted(talk)
	one, two := []string{headerKey, "k", "Authorization", "Bearer sk-one"}, []string{headerKey, "k", "Authorization", "Bearer sk-two"}
	a := first.chat(chatBody, one...)
	require.JSONEq(t, `{"n":1}`, a.body)
	for _, other := range []answer{
		second.chat(streamBody, one...), second.chat(chatBody+" ", one...), second.chat(chatBody, append([]string{"X-Session-Id", "s"}, one...)...),
	} {
		require.Equal(t, http.StatusUnprocessableEntity, other.StatusCode)
		require.Equal(t, "idempotency_key_reused", gjson.Get(other.body, "error.code").Str)
		require.Contains(t, gjson.Get(other.body, "error.message").Str, "another request")
		require.Empty(t, other.Header.Get(headerReplayed))
	}
	require.JSONEq(t, `{"n":2}`, second.chat(chatBody, two...).body, "it is another client's")

	const words = `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`
	message := func(body string, header ...string) answer {
		return second.do(http.MethodPost, "/v1/messages", strings.NewReader(body), append(header, one...)...)
	}
	require.JSONEq(t, `{"n":3}`, message(words).body, "it is another route")
	for _, other := range []answer{message(strings.Replace(words, "5", "6", 1)), message(words, "Anthropic-Beta", "b")} {
		require.Equal(t, http.StatusUnprocessableEntity, other.StatusCode)
		require.Equal(t, "error invalid_request_error", gjson.Get(other.body, "type").Str+" "+gjson.Get(other.body, "error.type").Str)
	}
	require.JSONEq(t, `{"n":4}`, second.do(http.MethodPost, "/v1/embeddings", strings.NewReader(`{"model":"m","input":"hi"}`), one...).body)
	require.JSONEq(t, `{"n":1}`, second.chat(chatBody, one...).body)
	require.Equal(t, int64(4), count.Load())
}

// what is no key is a 400, and so is what is wrong with a request, which takes up no key.
func TestBadIdempotencyKey(t *testing.T) {
	t.Parallel()
	g := setup(t, oneModel)
	count := g.counted(talk)
	for _, key := range []string{"", strings.Repeat("k", 256), "a b", "schlüssel", "tab\there"} {
		a := g.chat(chatBody, headerKey, key)
		require.Equal(t, http.StatusBadRequest, a.StatusCode, "%q", key)
		require.Contains(t, gjson.Get(a.body, "error.message").Str, headerKey)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1/chat/completions", strings.NewReader(chatBody))
	require.NoError(t, err)
	req.Header[headerKey] = []string{"a", "a"}
	resp, err := g.client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)

	require.Equal(t, http.StatusBadRequest, g.chat(`{"model":"m"}`, headerKey, "k").StatusCode)
	require.Equal(t, http.StatusOK, g.chat(chatBody, headerKey, "k").StatusCode)
	require.Equal(t, int64(1), count.Load())
}

// an error that blames the request is its answer; after one that may pass, the request is run anew.
func TestPassingErrorsAreNotRepeated(t *testing.T) {
	t.Parallel()
	first, second := pair(t, nil)
	count := &atomic.Int64{}
	var status atomic.Int64
	first.answer(topology.Dispatcher, func(ctx context.Context, r *reply) {
		if n := count.Add(1); n%2 == 1 {
			r.refused(ctx, int(status.Load()))
		} else {
			talk(ctx, n, r)
		}
	})
	for want, again := range map[int]bool{400: false, 404: false, 413: false, 408: true, 424: true, 429: true, 500: true, 502: true, 503: true} {
		for _, body := range []string{chatBody, streamBody} {
			status.Store(int64(want))
			count.Store(0)
			key := fmt.Sprintf("%d-%d", want, len(body))
			a := first.chat(body, headerKey, key)
			require.Equal(t, want, a.StatusCode, a.body)
			for range 2 {
				b := second.chat(body, headerKey, key)
				if again {
					require.Equal(t, http.StatusOK, b.StatusCode, want)
					require.Contains(t, b.body, `"n":2`)
					continue
				}
				require.Equal(t, want, b.StatusCode)
				require.Equal(t, a.body, b.body)
				require.Equal(t, "1", b.Header.Get("X-Gateway-Attempts"))
				require.Equal(t, "true", b.Header.Get(headerReplayed))
			}
		}
	}
}

// of many who ask at the same time at both ingresses one request is run, and all get its answer, from its beginning on.
func TestManyAskForOneAnswer(t *testing.T) {
	t.Parallel()
	first, second := pair(t, nil)
	proceed := make(chan struct{})
	count := first.counted(func(ctx context.Context, n int64, r *reply) {
		if r.work.Request.Stream {
			_ = r.head("text/event-stream")
			_ = r.send(ctx, "data: begun\n\n")
			<-proceed
			_ = r.send(ctx, "data: [DONE]\n\n")
			_ = r.end()
			return
		}
		talk(ctx, n, r)
	})
	const clients = 50
	for _, body := range []string{chatBody, streamBody} {
		answers, errs := make([]answer, clients), make([]error, clients)
		var asking sync.WaitGroup
		for i := range clients {
			asking.Go(func() {
				g := first
				if i%2 == 1 {
					g = second
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*testWait)
				defer cancel()
				answers[i], errs[i] = g.try(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(body), headerKey, "many"+strconv.Itoa(len(body)))
			})
		}
		if body == streamBody {
			await.True(t, func() bool { return count.Load() == 2 })
			close(proceed)
		}
		asking.Wait()
		require.NoError(t, errors.Join(errs...))
		own := 0
		for _, a := range answers {
			require.Equal(t, http.StatusOK, a.StatusCode, a.body)
			require.Equal(t, answers[0].body, a.body)
			if a.Header.Get(headerReplayed) == "" {
				own++
			}
		}
		require.Equal(t, 1, own)
	}
	require.Equal(t, int64(2), count.Load())
	require.Equal(t, "data: begun\n\ndata: [DONE]\n\n", second.chat(streamBody, headerKey, "many"+strconv.Itoa(len(streamBody))).body)
}

// a client that leaves cancels nothing, whether it waits or reads, and gets the answer when it comes back, wherever it does. An ingress that ends is no
// different.
func TestClientThatLeavesCancelsNothing(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"whole": chatBody, "stream": streamBody} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := pair(t, nil)
			proceed, working, gone := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
			count := second.counted(func(ctx context.Context, n int64, r *reply) {
				if r.work.Request.Stream {
					_ = r.head("text/event-stream")
					_ = r.send(ctx, "data: begun\n\n")
				}
				close(working)
				select {
				case <-proceed:
				case <-r.gone:
					gone <- struct{}{}
				}
				if r.work.Request.Stream {
					_ = r.send(ctx, "data: [DONE]\n\n")
					_ = r.end()
					return
				}
				talk(ctx, n, r)
			})
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan error, 1)
			go func() {
				_, err := first.try(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(body), headerKey, "k")
				left <- err
			}()
			await.Value(t, working)
			leave()
			require.Error(t, await.Value(t, left))
			stopped, cancel := context.WithTimeout(t.Context(), testWait)
			defer cancel()
			require.NoError(t, first.ingress.Stop(stopped), "nobody is left there")
			came := make(chan answer, 1)
			go func() {
				a, _ := second.try(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body), headerKey, "k")
				came <- a
			}()
			close(proceed)
			a := await.Value(t, came)
			require.Equal(t, http.StatusOK, a.StatusCode)
			require.NotEmpty(t, a.body)
			require.Equal(t, int64(1), count.Load())
			require.Empty(t, gone)
		})
	}
}

// an answer that is much larger than what is kept for a client gets to it whole, however slow that is, and again.
func TestLargeAnswerIsRepeated(t *testing.T) {
	t.Parallel()
	first, second := pair(t, nil)
	const events = 3000
	text := "data: " + strings.Repeat("x", 1000) + "\n\n"
	first.counted(func(ctx context.Context, _ int64, r *reply) {
		if r.work.Request.Stream {
			_ = r.head("text/event-stream")
		} else {
			_ = r.head("application/json")
		}
		for range events {
			_ = r.Data(ctx, []byte(text))
		}
		_ = r.end()
	})
	for _, body := range []string{chatBody, streamBody} {
		for _, g := range []*gateway{first, second} {
			a := g.chat(body, headerKey, fmt.Sprint("k", len(body)))
			require.Equal(t, events, strings.Count(a.body, text))
		}
	}
}

// what was lost is told to those who wait for it, and is run anew for whoever asks later.
func TestLostAnswerIsRunAnew(t *testing.T) {
	t.Parallel()
	first, second := pair(t, nil)
	count := first.counted(func(ctx context.Context, n int64, r *reply) {
		if n%2 == 0 {
			talk(ctx, n, r)
			return
		}
		if r.work.Request.Stream {
			_ = r.head("text/event-stream")
			_ = r.send(ctx, "data: begun\n\n")
		}
	})
	a := first.chat(chatBody, headerKey, "whole")
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	require.Equal(t, "answer_lost", gjson.Get(a.body, "error.code").Str)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	require.JSONEq(t, `{"n":2}`, second.chat(chatBody, headerKey, "whole").body)
	a = first.chat(streamBody, headerKey, "stream")
	require.Contains(t, a.body, "begun")
	require.Contains(t, a.body, "answer_lost")
	require.Contains(t, second.chat(streamBody, headerKey, "stream").body, `{"n":4,"i":2}`)
	require.Equal(t, int64(4), count.Load())
}

// a response in the background has the same id for whoever asks under its key, also when it has ended; one that was removed is made anew. Another
// response that is recorded is none in the background.
func TestBackgroundResponseWithAKey(t *testing.T) {
	t.Parallel()
	first, second := pair(t, nil)
	count := first.counted(func(ctx context.Context, _ int64, r *reply) {
		_ = r.head("text/event-stream")
		_ = r.send(ctx, strings.Join(answerEvents(3), ""))
		_ = r.end()
	})
	r := first.asked(headerKey, "k")
	id := r.Get("id").Str
	first.polledUntil(id, "completed")
	require.JSONEq(t, r.Raw, second.asked(headerKey, "k").Raw)
	require.Equal(t, int64(1), count.Load())
	require.Equal(t, http.StatusUnprocessableEntity, second.do(http.MethodPost, pathResponses, strings.NewReader(backgroundLive), headerKey, "k").StatusCode)

	live := first.do(http.MethodPost, pathResponses, strings.NewReader(backgroundLive), headerKey, "live")
	again := second.do(http.MethodPost, pathResponses, strings.NewReader(backgroundLive), headerKey, "live")
	require.Contains(t, live.body, "response.completed")
	require.Equal(t, live.body, again.body)
	require.Equal(t, "true", again.Header.Get(headerReplayed))

	rid, _ := contract.RequestOf(id)
	require.NoError(t, first.worker.ForgetRecorded(t.Context(), rid))
	require.NotEqual(t, id, second.asked(headerKey, "k").Get("id").Str)

	plain := first.do(http.MethodPost, pathResponses, strings.NewReader(`{"model":"m","input":"hi"}`), headerKey, "plain")
	require.Equal(t, http.StatusOK, plain.StatusCode)
	path := pathResponses + "/" + contract.ResponseID(plain.Header.Get("X-Request-Id"))
	require.NotEqual(t, http.StatusOK, first.do(http.MethodPost, path+"/cancel", nil).StatusCode)
}

// scopeOf is what a key of a client without one is claimed under, and wantedOf what a chat request asks for.
func scopeOf(key string) string {
	return digested(contract.PrincipalAnonymous, "/v1/chat/completions", key)
}
func wantedOf(body string) string { return digested(body, "") }
func digested(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// an ingress that died at any place of taking a request is no obstacle: the next one to be asked does what is left.
func TestIngressThatDiedWhileTakingARequest(t *testing.T) {
	t.Parallel()
	g := setup(t, oneModel)
	count := g.counted(talk)
	b := bustest.Connect(t, g.nats)
	envelope := func(id string) *contract.Request {
		d := contract.ConfiguredModel("m")
		return &contract.Request{
			ID: id, StartBy: time.Now().Add(time.Hour), Slip: contract.Slip{contract.StageEnriched}, Principal: contract.PrincipalAnonymous, Operation: contract.Chat,
			Surface: contract.SurfaceChat, Model: "m", ReceivedAt: time.Now(), Background: true, Decision: &d,
		}
	}
	claim := func(key, id string) {
		last, err := b.Claimed(t.Context(), scopeOf(key))
		require.NoError(t, err)
		require.NoError(t, b.Claim(t.Context(), scopeOf(key), last, bus.Claim{Request: id, Digest: wantedOf(chatBody)}))
		require.ErrorIs(t, b.Claim(t.Context(), scopeOf(key), last, bus.Claim{Request: "late"}), bus.ErrSuperseded)
	}
	require.NoError(t, b.Record(t.Context(), envelope("unclaimed"), nil))
	require.JSONEq(t, `{"n":1}`, g.chat(chatBody, headerKey, "unclaimed").body)

	require.NoError(t, b.Record(t.Context(), envelope("unpublished"), nil))
	claim("unpublished", "unpublished")
	for range 2 {
		a := g.chat(chatBody, headerKey, "unpublished")
		require.JSONEq(t, `{"n":2}`, a.body)
		require.Equal(t, "true", a.Header.Get(headerReplayed))
	}
	claim("void", "void") // its recording has expired
	require.JSONEq(t, `{"n":3}`, g.chat(chatBody, headerKey, "void").body)
	require.JSONEq(t, `{"n":3}`, g.chat(chatBody, headerKey, "void").body)
	require.Equal(t, int64(3), count.Load())
}

// a request that no worker takes waits, although its client has left: whoever repeats it gets its answer. A stream gets signs of life once somebody works
// on it.
func TestRequestThatWaits(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) {
		oneModel(c)
		c.PingAfter = time.Millisecond
	})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := g.try(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(streamBody), headerKey, "k")
		left <- err
	}()
	await.True(t, func() bool {
		c, err := g.worker.Claimed(t.Context(), scopeOf("k"))
		require.NoError(t, err)
		return c.Request != ""
	})
	leave()
	require.Error(t, await.Value(t, left))
	came, proceed := make(chan struct{}), make(chan struct{})
	count := g.counted(func(ctx context.Context, n int64, r *reply) {
		came <- struct{}{}
		<-proceed
		talk(ctx, n, r)
	})
	again := make(chan *http.Response, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1/chat/completions", strings.NewReader(streamBody))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set(headerKey, "k")
		resp, err := g.client.Do(req) //nolint:bodyclose // the test does
		if err != nil {
			t.Error(err)
			return
		}
		again <- resp
	}()
	await.Value(t, came)
	resp := await.Value(t, again)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	begin := make([]byte, 1)
	_, err := resp.Body.Read(begin)
	require.NoError(t, err)
	require.Equal(t, ":", string(begin))
	close(proceed)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, g.chat(streamBody, headerKey, "k").body, `{"n":1,"i":2}`)
	require.Equal(t, int64(1), count.Load())
}

package execute_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/shared/contract"
)

// bubble runs a test with fake time and a world that is gone at its end.
func bubble(t *testing.T, upstreams map[string]handler, test func(w *world), adjust ...func(*execute.Channel)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, upstreams, adjust...)
		test(w)
		synctest.Wait()
		w.idle()
		w.close()
	})
}

// Scenario 1, R-144: the second upstream is used only while the first is full.
func TestScenario1SecondOnlyWhileFirstIsFull(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": inTurn(events(delta(`{"content":"one"}`), pause(time.Second), stop, doneEvent), reply("a")), "b": reply("b")},
		func(w *world) {
			t := w.t
			_, wait := w.background(t.Context())
			synctest.Wait()
			second, _ := w.run(t.Context(), plainBody)
			require.Contains(t, second.text(), `"content":"b"`)
			require.Equal(t, "KEY_AVAILABILITY", second.header("X-Routing-Reason")) // it is not whom the client would have had
			require.Equal(t, "success", wait().Usage.Status)
			third, _ := w.run(t.Context(), plainBody)
			require.Contains(t, third.text(), `"content":"a"`)
			require.Equal(t, "pa", third.header("X-Gateway-Provider"))
			require.Equal(t, "USER_HINT", third.header("X-Routing-Reason"))
		}, single("a"))
}

// Scenario 2, R-141: all slots taken is refused at once.
func TestScenario2AllBusy(t *testing.T) {
	t.Parallel()
	slow := events(delta(`{"content":"x"}`), pause(time.Second), stop, doneEvent)
	bubble(t, map[string]handler{"a": slow, "b": slow}, func(w *world) {
		t := w.t
		_, first := w.background(t.Context())
		synctest.Wait()
		_, second := w.background(t.Context())
		synctest.Wait()
		start := time.Now()
		third, out := w.run(t.Context(), streamBody)
		require.Zero(t, time.Since(start))
		require.Equal(t, http.StatusServiceUnavailable, third.head.Status)
		require.Contains(t, third.text(), "all upstreams busy")
		require.Empty(t, out.Usage.Attempts)
		first()
		second()
		require.Equal(t, 1, w.called("a"))
		require.Equal(t, 1, w.called("b"))
		require.Contains(t, w.log.String(), "[llm-proxy] rejected 503 all upstreams busy model=m active[a]=1/1 active[b]=1/1")
	}, single("a"), single("b"))
}

// Scenario 3, R-119, R-370: a 500 fails over, with one line in the log.
func TestScenario3Failover(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(500, `{"error":{"message":"at /srv/app.py"}}`), "b": reply("b")}, func(w *world) {
		t := w.t
		start := time.Now()
		got, out := w.run(t.Context(), plainBody)
		require.Zero(t, time.Since(start))
		require.Equal(t, http.StatusOK, got.head.Status)
		require.Contains(t, got.text(), `"content":"b"`)
		require.Equal(t, 1, strings.Count(w.log.String(), "[llm-proxy] failover"))
		require.NotContains(t, w.log.String(), "app.py")
		require.Equal(t, "2", got.header("X-Gateway-Attempts"))
		require.Equal(t, "KEY_AVAILABILITY", got.header("X-Routing-Reason"))
		require.Equal(t, contract.ReasonKeyAvailability, out.Usage.RoutingReason)
		require.Len(t, out.Usage.Attempts, 2)
		require.Equal(t, contract.CallFailed, out.Usage.Attempts[0].Outcome)
		require.Equal(t, int64(3), out.Usage.Total)
	})
}

// an answer of the second upstream after a limit of the first says so.
func TestReasonAfterALimit(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(429, `{"error":{"message":"slow down"}}`), "b": reply("b")}, func(w *world) {
		got, out := w.run(w.t.Context(), plainBody)
		require.Equal(w.t, http.StatusOK, got.head.Status)
		require.Equal(w.t, "RATE_LIMIT", got.header("X-Routing-Reason"))
		require.Equal(w.t, contract.ReasonRateLimit, out.Usage.RoutingReason)
	})
}

// Scenario 4: both answer 429: 503, each called once, and the shortest announced wait is kept (FO-12).
func TestScenario4AllThrottled(t *testing.T) {
	t.Parallel()
	throttled := func(after string) handler {
		return func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Retry-After", after)
			status(429, `{"error":{"message":"slow","type":"rate_limit_error"}}`)(w, r, n)
		}
	}
	bubble(t, map[string]handler{"a": throttled("9"), "b": throttled("5")}, func(w *world) {
		t := w.t
		got, _ := w.run(t.Context(), streamBody)
		require.Equal(t, http.StatusServiceUnavailable, got.head.Status)
		require.Contains(t, got.text(), "all upstreams failed")
		require.Equal(t, "5", got.header("Retry-After"))
		require.Equal(t, 1, w.called("a"))
		require.Equal(t, 1, w.called("b"))
	})
}

// Scenario 5, R-101, R-143: a 400 is final and passes; the breaker does not move.
func TestScenario5ClientFault(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(400, `{"error":{"message":"bad param","type":"invalid_request_error","param":"temperature","code":null}}`), "b": reply("b")},
		func(w *world) {
			t := w.t
			for range 5 {
				got, _ := w.run(t.Context(), plainBody)
				require.Equal(t, http.StatusBadRequest, got.head.Status)
				require.JSONEq(t, `{"error":{"message":"bad param","type":"invalid_request_error","param":"temperature","code":null},"detail":"bad param"}`, got.text())
			}
			require.Zero(t, w.called("b"))
			require.Equal(t, breaker.Closed, w.breakers.Get("a").State())
			require.Zero(t, w.breakers.Get("a").Snapshot().Failures)
		})
}

// Scenario 6, R-118: 402 is final for a named model.
func TestScenario6NoBalance(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(402, `{"error":{"message":"insufficient balance"}}`), "b": reply("b")}, func(w *world) {
		t := w.t
		got, _ := w.run(t.Context(), plainBody)
		require.Equal(t, http.StatusPaymentRequired, got.head.Status)
		require.Contains(t, got.text(), "insufficient balance")
		require.Equal(t, 1, w.called("a"))
		require.Zero(t, w.called("b"))
	})
}

// Scenario 7, R-121: nothing of a failed stream reaches the client.
func TestScenario7ErrorBeforeContent(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": events(delta(`{"role":"assistant"}`), delta(`{"content":""}`), errorLine), "b": reply("b")},
		func(w *world) {
			t := w.t
			got, _ := w.run(t.Context(), streamBody)
			require.Equal(t, http.StatusOK, got.head.Status)
			require.Equal(t, delta(`{"content":"b"}`)+stop+doneEvent, got.text())
			require.Equal(t, 1, w.breakers.Get("a").Snapshot().Failures)
		})
}

// Scenario 8, R-121, R-123: a silent stream is committed at 30 s, and is no failure.
func TestScenario8SlowIsNotBroken(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": events(delta(`{"role":"assistant"}`), pause(45*time.Second), delta(`{"content":"late"}`), stop, doneEvent), "b": reply("b")},
		func(w *world) {
			t := w.t
			start := time.Now()
			got, out := w.run(t.Context(), streamBody)
			require.Equal(t, 30*time.Second, got.headAt.Sub(start))
			require.Contains(t, got.text(), "late")
			require.Equal(t, "success", out.Usage.Status)
			require.Zero(t, w.called("b"))
			require.Zero(t, w.breakers.Get("a").Snapshot().Failures)
		})
}

// Scenario 9, R-040, R-124, C-29: content, then an error: an error event, no [DONE], no failover, a counted failure, no secret.
func TestScenario9ErrorAfterContent(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": events(delta(`{"content":"Par"}`), errorLine), "b": reply("b")}, func(w *world) {
		t := w.t
		got, out := w.run(t.Context(), streamBody)
		require.True(t, strings.HasPrefix(got.text(), delta(`{"content":"Par"}`)+`data: {"error":`), got.text())
		require.NotContains(t, got.text(), "[DONE]")
		require.NotContains(t, got.text(), "key-of-a")
		require.Zero(t, w.called("b"))
		require.Equal(t, 1, w.breakers.Get("a").Snapshot().Failures)
		require.Equal(t, "error: SERVICE_UNAVAILABLE", out.Usage.Status)
	})
}

// Scenario 10, R-125: no headers for 240 s end the call; the slot is free at once.
func TestScenario10HeaderTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": hang, "b": reply("b")}, func(w *world) {
		t := w.t
		start := time.Now()
		got, _ := w.run(t.Context(), plainBody)
		require.Equal(t, 240*time.Second, time.Since(start))
		require.Contains(t, got.text(), `"content":"b"`)
		w.idle()
		require.Equal(t, 1, w.breakers.Get("a").Snapshot().Failures)
	}, single("a"))
}

// Scenario 11, R-146, R-148: a stream that runs at 300 s is cut with an error event.
func TestScenario11TotalTimeout(t *testing.T) {
	t.Parallel()
	steps := []string{}
	for range 400 {
		steps = append(steps, delta(`{"content":"x"}`), pause(time.Second))
	}
	bubble(t, map[string]handler{"a": events(steps...), "b": reply("b")}, func(w *world) {
		t := w.t
		start := time.Now()
		got, _ := w.run(t.Context(), streamBody)
		require.Equal(t, 300*time.Second, time.Since(start))
		require.Contains(t, got.text(), `data: {"error":`)
		require.NotContains(t, got.text(), "[DONE]")
		require.Zero(t, w.called("b"))
	})
}

// Scenario 12, R-012: a client that leaves during the gate cancels the call; nobody is to blame.
func TestScenario12ClientLeaves(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": events(delta(`{"role":"assistant"}`), pause(time.Hour)), "b": reply("b")}, func(w *world) {
		t := w.t
		ctx, cancel := context.WithCancelCause(t.Context())
		got, wait := w.background(ctx)
		synctest.Wait()
		cancel(classify.ErrClientGone)
		out := wait()
		require.Equal(t, "cancelled", out.Usage.Status)
		require.False(t, out.HandBack)
		require.Nil(t, got.head)
		synctest.Wait()
		require.Equal(t, 1, w.gone["a"])
		require.Zero(t, w.called("b"))
		require.Zero(t, w.breakers.Get("a").Snapshot().Failures)
		w.idle()
	})
}

// Scenario 13, R-110, R-111: three failures within 300 s open for 60 s; meanwhile the channel sees no connection.
func TestScenario13WindowBreaker(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at    []time.Duration
		opens bool
	}{
		"0, 100, 299 s": {[]time.Duration{0, 100 * time.Second, 299 * time.Second}, true},
		"0, 100, 301 s": {[]time.Duration{0, 100 * time.Second, 301 * time.Second}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": status(500, "{}"), "b": reply("b")}, func(w *world) {
				t := w.t
				start := time.Now()
				for _, at := range tc.at {
					<-time.After(at - time.Since(start))
					w.run(t.Context(), plainBody)
				}
				calls := w.called("a")
				<-time.After(59 * time.Second)
				got, _ := w.run(t.Context(), plainBody)
				require.Contains(t, got.text(), `"content":"b"`)
				if !tc.opens {
					require.Equal(t, calls+1, w.called("a"))
					return
				}
				require.Equal(t, calls, w.called("a"))
				<-time.After(2 * time.Second)
				w.run(t.Context(), plainBody)
				require.Equal(t, calls+1, w.called("a"))
			})
		})
	}
}

// at most three real calls; open channels cost none of them.
func TestHopBudget(t *testing.T) {
	t.Parallel()
	fail := status(500, "{}")
	bubble(t, map[string]handler{"a": fail, "b": fail, "c": fail, "d": reply("d")}, func(w *world) {
		t := w.t
		got, _ := w.run(t.Context(), plainBody)
		require.Equal(t, http.StatusServiceUnavailable, got.head.Status)
		require.Zero(t, w.called("d"))
		for range 2 {
			w.run(t.Context(), plainBody)
		}
		got, _ = w.run(t.Context(), plainBody) // a, b and c are open now
		require.Contains(t, got.text(), `"content":"d"`)
		require.Equal(t, 3, w.called("a"))
	})
}

// attempts of workers that died count against the budget and stay in the ledger.
func TestLostAttemptsCount(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(500, "{}"), "b": reply("b")}, func(w *world) {
		t := w.t
		j := job(plainBody)
		j.Delivery, j.Lost = 3, []uint64{1, 2}
		var got answer
		out := w.exec.Run(t.Context(), j, &got)
		require.Equal(t, http.StatusServiceUnavailable, got.head.Status)
		require.Equal(t, 1, w.called("a"))
		require.Zero(t, w.called("b"))
		require.Len(t, out.Usage.Attempts, 3)
		require.Equal(t, contract.CallLost, out.Usage.Attempts[0].Outcome)
	})
}

// Delivery rule 8: a stopping process hands back what is not committed and ends what is.
func TestStopping(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": inTurn(hang, events(delta(`{"content":"x"}`), pause(time.Hour)))}, func(w *world) {
		t := w.t
		for _, committed := range []bool{false, true} {
			ctx, cancel := context.WithCancelCause(t.Context())
			got, wait := w.background(ctx)
			synctest.Wait()
			cancel(context.Canceled)
			out := wait()
			require.Equal(t, !committed, out.HandBack)
			if committed {
				require.Contains(t, got.text(), `data: {"error":`)
				require.Equal(t, contract.OutcomeError, got.end.Outcome)
			}
		}
		require.Zero(t, w.breakers.Get("a").Snapshot().Failures)
	})
}

// the limit of the whole request ends it with an error of ours.
func TestRequestDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": hang, "b": hang}, func(w *world) {
		t := w.t
		w.exec.Limits.RequestDeadline = 10 * time.Second
		start := time.Now()
		got, out := w.run(t.Context(), plainBody)
		require.Equal(t, 10*time.Second, time.Since(start))
		require.Equal(t, http.StatusServiceUnavailable, got.head.Status)
		require.False(t, out.HandBack)
		require.Zero(t, w.called("b"))
	})
}

// STR-01: a finished stream that stays open is ended after a grace period; its usage may still come.
func TestGraceAfterFinish(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": events(delta(`{"content":"Hi"}`), stop, pause(time.Hour))}, func(w *world) {
		t := w.t
		start := time.Now()
		got, out := w.run(t.Context(), streamBody)
		require.LessOrEqual(t, time.Since(start), 3*time.Second)
		require.True(t, strings.HasSuffix(got.text(), stop+doneEvent))
		require.Equal(t, "success", out.Usage.Status)
		start = time.Now()
		got, out = w.run(t.Context(), plainBody)
		require.LessOrEqual(t, time.Since(start), 3*time.Second)
		require.Contains(t, got.text(), `"content":"Hi"`)
		require.Equal(t, "success", out.Usage.Status)
	}, single("a"))
}

// STR-01, STR-14: an upstream that gives one answer although two are asked for, and no [DONE], is not broken.
func TestFewerAnswersThanAsked(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": events(delta(`{"content":"Hi"}`), stop)}, func(w *world) {
		t := w.t
		for _, body := range []string{streamBody, plainBody} {
			got, out := w.run(t.Context(), strings.Replace(body, "{", `{"n":2,`, 1))
			require.Equal(t, "success", out.Usage.Status)
			require.NotContains(t, got.text(), "error")
		}
	})
}

// a stream that falls silent after its first content is cut. Before that it may be slow; what is no content does not change that.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	const comment = ": working\n\n"
	hi, rest := delta(`{"content":"Hi"}`), []string{stop, doneEvent}
	for name, tc := range map[string]struct {
		stream []string
		after  time.Duration
		cut    bool
	}{
		"silent after content":              {[]string{hi, pause(time.Hour)}, 20 * time.Second, true},
		"silent after reasoning":            {[]string{delta(`{"reasoning_content":"Hm"}`), pause(time.Hour)}, 20 * time.Second, true},
		"silent before content":             {append([]string{pause(25 * time.Second), hi}, rest...), 25 * time.Second, false},
		"a comment before content":          {append([]string{comment, pause(25 * time.Second), hi}, rest...), 25 * time.Second, false},
		"a role before content":             {append([]string{delta(`{"role":"assistant"}`), pause(25 * time.Second), hi}, rest...), 25 * time.Second, false},
		"an empty delta before content":     {append([]string{delta(`{"content":""}`), pause(25 * time.Second), hi}, rest...), 25 * time.Second, false},
		"slower than the gate":              {append([]string{comment, pause(31 * time.Second), comment, pause(time.Minute), hi}, rest...), 91 * time.Second, false},
		"comments between content":          {append([]string{hi, pause(15 * time.Second), comment, pause(15 * time.Second), hi}, rest...), 30 * time.Second, false},
		"silent after a slow first content": {[]string{comment, pause(time.Minute), hi, pause(time.Hour)}, 80 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": events(tc.stream...)}, func(w *world) {
				t := w.t
				w.exec.Limits.IdleTimeout = 20 * time.Second
				start := time.Now()
				got, _ := w.run(t.Context(), streamBody)
				require.Equal(t, tc.after, time.Since(start))
				require.Contains(t, got.text(), "H")
				require.Equal(t, tc.cut, strings.Contains(got.text(), `data: {"error":`))
			})
		})
	}
}

// FO-10, STR-10, STR-12 and others: what a 2xx may really be.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	label := func(contentType, body string) handler {
		return func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write([]byte(body))
		}
	}
	whole := `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"odd"},"finish_reason":"stop"}]}`
	for name, tc := range map[string]struct {
		body string
		h    handler
		want string // part of the answer: of a if it is accepted, else of b
	}{
		"HTML":                    {plainBody, label("text/html", "<html><body>Welcome</body></html>"), `"b"`},
		"HTML for a stream":       {streamBody, label("text/html", "<html><body>Welcome</body></html>"), `"b"`},
		"nothing":                 {plainBody, label("application/json", ""), `"b"`},
		"nothing for a stream":    {streamBody, label("text/event-stream", ""), `"b"`},
		"no choices":              {plainBody, label("application/json", `{"choices":[]}`), `"b"`},
		"error with 200":          {plainBody, label("application/json", `{"error":{"message":"x"}}`), `"b"`},
		"half a JSON":             {plainBody, label("application/json", whole[:60]), `"b"`},
		"JSON as text":            {plainBody, label("text/plain", whole), "odd"},
		"JSON where SSE is asked": {streamBody, label("application/json", whole), `"content":"odd"`},
		"SSE where JSON is asked": {plainBody, events(delta(`{"content":"od"}`), delta(`{"content":"d"}`), stop, doneEvent), `"content":"odd"`},
		"SSE as JSON":             {streamBody, label("application/json", delta(`{"content":"odd"}`)+stop+doneEvent), "odd"},
		"a piece of a stream":     {plainBody, label("application/json", strings.ReplaceAll(whole, `"message"`, `"delta"`)), `"message":{"role":"assistant","content":"odd"},"finish_reason":"stop"`},
		"half of such a stream":   {plainBody, label("application/json", `{"choices":[{"index":0,"delta":{"content":"odd"},"finish_reason":null}]}`), `"b"`},
		"redirect": {plainBody, func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, "http://b/", http.StatusFound)
		}, `"b"`},
		"connection reset": {plainBody, func(http.ResponseWriter, *http.Request, int) { panic(http.ErrAbortHandler) }, `"b"`},
		"reset after the headers": {plainBody, func(w http.ResponseWriter, _ *http.Request, _ int) {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, `"b"`},
		"gzip in name only": {plainBody, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte(whole))
		}, `"b"`},
		"a string":                {plainBody, label("application/json", `"hi"`), `"b"`},
		"a string for a stream":   {streamBody, label("application/json", `"hi"`), `"b"`},
		"a number":                {plainBody, label("application/json", "42"), `"b"`},
		"prose":                   {plainBody, label("text/plain", "hi there"), `"b"`},
		"an array":                {plainBody, label("application/json", "[]"), `"b"`},
		"an object of nothing":    {plainBody, label("application/json", "{}"), `"b"`},
		"a choice that is null":   {plainBody, label("application/json", `{"choices":[null]}`), `"b"`},
		"a message that is null":  {plainBody, label("application/json", `{"choices":[{"index":0,"message":null,"finish_reason":"stop"}]}`), `"b"`},
		"no message for a stream": {streamBody, label("application/json", `{"choices":[{"index":0,"finish_reason":"stop"}]}`), `"b"`},
		"byte order mark":         {plainBody, label("application/json", "\ufeff"+whole), "odd"},
		"mark before a stream":    {streamBody, label("application/json", "\ufeff"+whole), `"content":"odd"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": tc.h, "b": reply("b")}, func(w *world) {
				t := w.t
				got, _ := w.run(t.Context(), tc.body)
				require.Equal(t, http.StatusOK, got.head.Status, got.text())
				require.Contains(t, got.text(), tc.want)
				require.Equal(t, 1, w.called("a"))
			})
		})
	}
}

// AUTH-03, R-173: a key that an upstream repeats does not reach the client; R-100: 401 is never the client's.
func TestKeysAreScrubbed(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": inTurn(status(400, `{"error":{"message":"bad ?key=key-of-a"}}`), status(401, `{"error":{"message":"wrong key-of-a"}}`))},
		func(w *world) {
			t := w.t
			got, _ := w.run(t.Context(), plainBody)
			require.Equal(t, http.StatusBadRequest, got.head.Status)
			require.Contains(t, got.text(), "bad ?key=[key]")
			got, _ = w.run(t.Context(), plainBody)
			require.Equal(t, http.StatusFailedDependency, got.head.Status)
			require.NotContains(t, got.text()+w.log.String(), "key-of-a")
		})
}

package execute_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/shared/contract"
)

// passing lets channels have the routes of OpenAI's API, but those that are named.
func passing(but string) func(*execute.Channel) {
	return func(c *execute.Channel) { c.Passes = !strings.Contains(but, c.ID) }
}

func passJob(o contract.Operation, contentType, body string) execute.Job {
	return execute.Job{Body: []byte(body), Request: &contract.Request{
		ID: "r1", Model: "m", Operation: o, Surface: contract.SurfaceChat, ContentType: contentType, ReceivedAt: time.Now(),
		Decision: &contract.Decision{Model: "m", PinProvider: true, PinModel: true, Configured: true, Reason: contract.ReasonModelHint},
	}}
}

func (w *world) pass(o contract.Operation, contentType, body string) (*answer, execute.Outcome) {
	var a answer
	out := w.exec.Run(w.t.Context(), passJob(o, contentType, body), &a)
	return &a, out
}

const formBody = "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n\x00\xff\r\n--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--B--\r\n"

// sound answers with bytes in two pieces.
func sound(w http.ResponseWriter, _ *http.Request, _ int) {
	w.Header().Set("Content-Type", "audio/mpeg")
	_, _ = w.Write([]byte("ID3\x00"))
	_ = http.NewResponseController(w).Flush()
	_, _ = w.Write([]byte("\xff\xfb"))
}

// what goes to the upstream and what comes back, with failover before the headers.
func TestPassthrough(t *testing.T) {
	t.Parallel()
	type seen struct{ path, kind, accept, encoding, body string }
	var got seen
	noting := func(h handler) handler {
		return func(w http.ResponseWriter, r *http.Request, n int) {
			body, _ := io.ReadAll(r.Body)
			got = seen{r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("Accept"), r.Header.Get("Accept-Encoding"), string(body)}
			h(w, r, n)
		}
	}
	page := func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>sorry</html>")
	}
	moderation := status(200, `{"id":"modr-1", "results":[{"flagged":false}],"usage":{"input_tokens":2,"output_tokens":1}}`)
	transcript := events("data: {\"delta\":\"Hi\"}\n\n", "data: {\"type\":\"transcript.text.done\",\"usage\":{\"input_tokens\":4,\"output_tokens\":5,\"total_tokens\":9}}\n\n")
	bubble(t, map[string]handler{"a": inTurn(status(503, "{}"), page), "b": noting(inTurn(moderation, sound, transcript))}, func(w *world) {
		t := w.t
		a, out := w.pass(contract.Moderations, "", `{"model":"m", "input":"hi"}`)
		require.Equal(t, seen{"/v1/moderations", "application/json", "*/*", "identity", `{"model":"real-b", "input":"hi"}`}, got)
		require.Equal(t, `{"id":"modr-1", "results":[{"flagged":false}],"usage":{"input_tokens":2,"output_tokens":1}}`, a.text())
		require.Equal(t, "application/json", a.header("Content-Type"))
		require.Equal(t, "b", a.header("X-Gateway-Upstream"))
		require.True(t, a.head.Stream)
		require.Equal(t, contract.OutcomeSuccess, a.end.Outcome)
		require.Len(t, out.Usage.Attempts, 2)
		require.EqualValues(t, 3, out.Usage.Total)
		require.EqualValues(t, "moderations", out.Usage.Endpoint)

		a, _ = w.pass(contract.Speech, "", `{"model":"m","input":"hi","voice":"alloy"}`)
		require.Equal(t, "ID3\x00\xff\xfb", a.text())
		require.Equal(t, "audio/mpeg", a.header("Content-Type"))

		const kind = "multipart/form-data; boundary=B"
		a, out = w.pass(contract.Transcriptions, kind, formBody)
		require.Equal(t, seen{"/v1/audio/transcriptions", kind, "*/*", "identity", strings.Replace(formBody, "\r\n\r\nm\r\n", "\r\n\r\nreal-b\r\n", 1)}, got)
		require.Equal(t, "text/event-stream", a.header("Content-Type"))
		require.EqualValues(t, 9, out.Usage.Total)
		require.Equal(t, 3, w.called("a"), "a page is no answer")
	}, passing(""))
}

// a refusal of the request is the client's, whoever else is there.
func TestPassthroughRefused(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(400, `{"error":{"message":"voice is unknown","type":"invalid_request_error","param":"voice"}}`), "b": sound}, func(w *world) {
		a, _ := w.pass(contract.Speech, "", `{"model":"m"}`)
		require.Equal(w.t, http.StatusBadRequest, a.head.Status)
		require.Contains(w.t, a.text(), "voice is unknown")
		require.Zero(w.t, w.called("b"))
	}, passing(""))
}

// providers with another API are not asked; where all have one, the client is told so.
func TestPassthroughNeedsTheAPI(t *testing.T) {
	t.Parallel()
	for but, called := range map[string]int{"a": 1, "ab": 0} {
		bubble(t, map[string]handler{"a": sound, "b": sound}, func(w *world) {
			a, out := w.pass(contract.Speech, "", `{"model":"m"}`)
			require.Zero(w.t, w.called("a"))
			require.Equal(w.t, called, w.called("b"))
			if called == 1 {
				require.Equal(w.t, contract.ShowReason(contract.ReasonModelHint), a.header("X-Routing-Reason"))
				return
			}
			require.Equal(w.t, http.StatusBadRequest, a.head.Status)
			require.Contains(w.t, a.text(), "/audio/speech")
			require.Contains(w.t, a.text(), `"param":"model"`)
			require.Equal(w.t, "error: VALIDATION_ERROR", out.Usage.Status)
		}, passing(but))
	}
}

// after the headers nothing is tried again, and an answer that is not whole does not look so.
func TestPassthroughBreaksOff(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(w http.ResponseWriter, r *http.Request){
		"cut":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			half := func(w http.ResponseWriter, r *http.Request, _ int) {
				w.Header().Set("Content-Type", "audio/mpeg")
				_, _ = w.Write([]byte("ID3"))
				_ = http.NewResponseController(w).Flush()
				after(w, r)
			}
			bubble(t, map[string]handler{"a": half, "b": sound}, func(w *world) {
				t := w.t
				w.exec.Limits.IdleTimeout = 60 * time.Second
				began := time.Now()
				a, out := w.pass(contract.Speech, "", `{"model":"m"}`)
				require.Equal(t, "ID3", a.text())
				require.Equal(t, contract.OutcomeBroken, a.end.Outcome)
				require.Equal(t, "error: SERVICE_UNAVAILABLE", out.Usage.Status)
				require.Zero(t, w.called("b"))
				require.LessOrEqual(t, time.Since(began), 61*time.Second)
				require.Equal(t, 1, w.breakers.Get("a").Snapshot().Failures)
				w.idle()
			}, passing(""))
		})
	}
}

// a client that leaves stops the call and gives the slot back; it is nobody's failure.
func TestPassthroughClientLeaves(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request, _ int) {
		_, _ = w.Write([]byte("x"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	bubble(t, map[string]handler{"a": endless}, func(w *world) {
		t := w.t
		ctx, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { leave(classify.ErrClientGone) })
		var a answer
		out := w.exec.Run(ctx, passJob(contract.Speech, "", `{"model":"m"}`), &a)
		require.Equal(t, "cancelled", out.Usage.Status)
		require.Zero(t, w.breakers.Get("a").Snapshot().Failures)
		w.idle()
	}, passing(""))
}

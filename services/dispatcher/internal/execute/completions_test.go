package execute_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/surface/completions"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

const (
	textPiece = `data: {"id":"cmpl-1", "object":"text_completion","created":5,"model":"real","choices":[{"index":0,"text":"\u00e9 1.50","logprobs":{"tokens":["x"]},"finish_reason":null,"stop_reason":7}]}` + "\n\n"
	textEnd   = `data: {"id":"cmpl-1","object":"text_completion","created":5,"model":"real","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"stop"}]}` + "\n\n"
	textUsage = `data: {"id":"cmpl-1","object":"text_completion","created":5,"model":"real","choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}` + "\n\n"
	textWhole = `{"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":"a <b>","finish_reason":"stop","prompt_logprobs":[1.0]},{"index":1,"text":"c","finish_reason":"length"}],"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}`
	fill      = `{"model":"m", "prompt":"def f(","suffix":"return x","temperature":0.50,"x":{"a":1.0}}`
)

// speakText makes the channels of these ids have Completions.
func speakText(w *world, ids string) {
	for i := range w.plan.chain.Links {
		if c := w.plan.chain.Links[i].Channel; strings.Contains(ids, c.ID) {
			c.Dialect = dialect.TextCompletions{Dialect: c.Dialect}
		}
	}
	w.exec.Surfaces[contract.SurfaceCompletions] = completions.Surface{}
}

func (w *world) complete(body string) (*answer, execute.Outcome) {
	var a answer
	out := w.exec.Run(w.t.Context(), execute.Job{Body: []byte(body), Request: &contract.Request{
		ID: "r1", Model: "m", Stream: strings.Contains(body, `"stream":true`), ReceivedAt: time.Now(), Operation: contract.Chat, Surface: contract.SurfaceCompletions,
		Decision: &contract.Decision{Model: "m", PinProvider: true, Configured: true, Reason: contract.ReasonModelHint},
	}}, &a)
	return &a, out
}

// a native upstream gets and gives bytes; patches of the configuration are merged in; the ledger counts.
func TestNativeCompletions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen []*http.Request
		var bodies []string
		w := setup(t, map[string]handler{"a": sentTo(&seen, &bodies, inTurn(status(200, textWhole), events(textPiece, textEnd, textUsage, doneEvent), events(textPiece, textEnd)))})
		defer w.close()
		speakText(w, "a")
		got, out := w.complete(fill)
		require.Equal(t, textWhole, got.text())
		require.Equal(t, "/v1/completions", seen[0].URL.Path)
		require.Equal(t, "Bearer key-of-a", seen[0].Header.Get("Authorization"))
		require.Equal(t, strings.Replace(fill, `"m"`, `"real-a"`, 1), bodies[0])
		require.EqualValues(t, 5, out.Usage.Total)
		require.Equal(t, contract.EndpointCompletions, out.Usage.Endpoint)

		streamed := strings.Replace(fill, `"x":`, `"stream":true,"x":`, 1)
		got, out = w.complete(streamed)
		require.Equal(t, textPiece+textEnd+textUsage+doneEvent, got.text())
		require.EqualValues(t, 5, out.Usage.Total)
		require.Equal(t, "success", out.Usage.Status)

		var err error
		w.plan.chain.Links[0].Patch, err = openai.CompilePatch([]byte(`{"top_k":5}`))
		require.NoError(t, err)
		got, _ = w.complete(streamed) // some servers leave out the end mark
		require.Equal(t, textPiece+textEnd+doneEvent, got.text())
		require.Equal(t, strings.Replace(strings.Replace(streamed, `"m"`, `"real-a"`, 1), `1.0}}`, `1.0},"top_k":5}`, 1), bodies[2])
		w.idle()
	})
}

// failover before the first text, in either direction; who can't fill in the middle is not asked to.
func TestNativeCompletionsAndFailover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := `data: {"error":{"message":"engine died","type":"server_error"}}` + "\n\n"
		w := setup(t, map[string]handler{"a": reply("from chat"), "b": inTurn(
			events(textPiece, textEnd, doneEvent), events(broken), events(textPiece, broken), status(200, `{"error":{"message":"no","code":503}}`), status(200, `{"choices":[]}`),
		)})
		defer w.close()
		speakText(w, "b")
		const plain = `{"model":"m","prompt":"hi","stream":true}`
		got, _ := w.complete(strings.Replace(fill, `"x":`, `"stream":true,"x":`, 1))
		require.Equal(t, textPiece+textEnd+doneEvent, got.text())
		require.Zero(t, w.called("a"))

		links := w.plan.chain.Links
		w.plan.chain = execute.NewChain([]execute.Link{links[1], links[0]})
		got, out := w.complete(plain)
		require.Contains(t, got.text(), `"text":"from chat"`)
		require.NotContains(t, got.text(), "engine died")
		require.Len(t, out.Usage.Attempts, 2)

		got, _ = w.complete(plain) // after the first text the provider's error passes
		require.Equal(t, textPiece+broken, got.text())
		require.Equal(t, contract.OutcomeError, got.end.Outcome)

		for range 2 { // what is no answer is none here, too
			got, _ = w.complete(`{"model":"m","prompt":"hi"}`)
			require.Contains(t, got.text(), `"text":"from chat"`)
		}

		w.plan.chain = execute.NewChain(links[:1])
		got, _ = w.complete(fill)
		require.Equal(t, http.StatusBadRequest, got.head.Status)
		require.Contains(t, got.text(), `"param":"suffix"`)
		w.idle()
	})
}

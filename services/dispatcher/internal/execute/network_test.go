package execute_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/shared/openai"
)

// away moves a channel to where nobody is.
func away(id string) func(*execute.Channel) {
	return func(c *execute.Channel) {
		if c.ID == id {
			c.URL = "http://nobody/v1"
		}
	}
}

// a network that gets nowhere costs no key, is left alone for seconds, and other keys are not tried on it.
func TestNetworkThatIsAway(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": reply("a")}, func(w *world) {
		pool := w.plan.chain.Links[0].Channel.Pool
		for range 3 {
			w.requireExhausted(exhausted{503, failed, 5, "5", "", "pa: no connection. Try again in 5 s"})
			require.Zero(w.t, pool.Wait("real-a", 0))
		}
		w.requireExhausted(exhausted{503, failed, 5, "5", "", "pa: circuit open until 2000-01-01T00:00:05Z"})
		<-time.After(5 * time.Second)
		_, out := w.routed(w.t.Context(), plainBody)
		require.Len(w.t, out.Usage.Attempts, 1)
	}, pooled(3), away("a"))
	bubble(t, map[string]handler{"a": reply("a"), "b": reply("b")}, func(w *world) {
		got, out := w.routed(w.t.Context(), plainBody)
		require.Equal(w.t, http.StatusOK, got.head.Status)
		require.Len(w.t, out.Usage.Attempts, 2)
	}, pooled(3), away("a"))
}

// a provider that hangs holds a routed stream for a while only, and not once more for each key, as long as somebody else could answer.
func TestProviderThatHangs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body   string
		others int // providers beside the one that hangs
		agent  bool
		want   time.Duration
	}{
		"another could answer": {streamBody, 1, false, time.Minute},
		"nobody else":          {streamBody, 0, false, 4 * time.Minute},
		"a whole answer":       {plainBody, 1, false, 4 * time.Minute},
		"a local agent":        {streamBody, 1, true, 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": hang, "b": reply("b")}, func(w *world) {
				w.exec.Limits.RoutedHeaders = time.Minute
				w.plan.chain = execute.NewChain(w.plan.chain.Links[:1+tc.others])
				begun := time.Now()
				got, _ := w.routed(w.t.Context(), tc.body)
				require.Equal(w.t, tc.want, time.Since(begun).Truncate(time.Second))
				require.Equal(w.t, 1, w.called("a"), "another key would hang as well")
				require.Equal(w.t, tc.others > 0, got.head.Status == http.StatusOK)
			}, pooled(3), func(c *execute.Channel) {
				if tc.agent {
					c.Agent = "OLLAMA"
				}
			})
		})
	}
	bubble(t, map[string]handler{"a": hang, "b": reply("b")}, func(w *world) { // a configured model has the time of its upstream
		w.exec.Limits.RoutedHeaders = time.Minute
		begun := time.Now()
		w.run(w.t.Context(), streamBody)
		require.Equal(w.t, 4*time.Minute, time.Since(begun).Truncate(time.Second))
	})
}

// what the gateway asks for by itself does not fail a request, and the provider is not asked for it again.
func TestAddedMemberIsTakenBack(t *testing.T) {
	t.Parallel()
	picky := func(member, message string) handler {
		return func(w http.ResponseWriter, r *http.Request, n int) {
			body, _ := io.ReadAll(r.Body)
			if gjson.GetBytes(body, member).Exists() {
				status(http.StatusBadRequest, message)(w, r, n)
				return
			}
			events(delta(`{"content":"a"}`), stop, doneEvent)(w, r, n)
		}
	}
	asked, err := openai.CompilePatch([]byte(`{"stream_options":{"include_usage":true}}`))
	require.NoError(t, err)
	for name, message := range map[string]string{
		"OpenAI's words":  `{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error"}}`,
		"as a parameter":  `{"error":{"message":"Extra inputs are not permitted","param":"stream_options.include_usage"}}`,
		"FastAPI's words": `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": picky("stream_options", message)}, func(w *world) {
				w.link("a", func(l *execute.Link) { l.Patch, l.Plain = asked, &openai.Patch{} })
				got, out := w.routed(w.t.Context(), streamBody)
				require.Contains(w.t, got.text(), `"content":"a"`)
				require.Equal(w.t, []string{"pa"}, w.plan.refuses)
				require.Len(w.t, out.Usage.Attempts, 2)
				w.idle()
			}, pooled(1))
			bubble(t, map[string]handler{"a": status(http.StatusBadRequest, message)}, func(w *world) {
				got, _ := w.routed(w.t.Context(), streamBody) // it was not the gateway that added it
				require.Equal(w.t, http.StatusBadRequest, got.head.Status)
				require.Equal(w.t, 1, w.called("a"))
			})
		})
	}
	const effort = `{"model":"m","stream":true,"reasoning_effort":"low","messages":[{"role":"user","content":"hi"}]}`
	bubble(t, map[string]handler{"a": picky("reasoning_effort", `{"error":{"message":"\"x\" does not support thinking","type":"invalid_request_error"}}`)}, func(w *world) {
		got, _ := w.routed(w.t.Context(), effort)
		require.Contains(w.t, got.text(), `"content":"a"`)
		require.Equal(w.t, []string{"pa/real-a 16"}, w.plan.lacks)
		got, _ = w.routed(w.t.Context(), effort, named)
		require.Equal(w.t, http.StatusBadRequest, got.head.Status, "the client meant this model")
	})
}

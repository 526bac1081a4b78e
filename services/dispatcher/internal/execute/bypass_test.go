package execute_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface/messages"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

const (
	nativeStart = "event: message_start\ndata: {\"type\":\"message_start\", \"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"real\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n"
	nativePing  = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	nativeText  = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\",\"citations\":[]}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\u00e9 1.50\"}}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
	nativeOther = "event: x_future\ndata: {\"type\": \"x_future\",  \"n\": 1.50}\n\n"
	nativeDelta = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"pause_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":15}}\n\n"
	nativeStop  = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	nativeError = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
	nativeAll   = nativeStart + nativePing + nativeOther + nativeText + nativeDelta + nativeStop
	nativeWhole = `{"id":"msg_1","type":"message","role":"assistant","model":"real","content":[{"type":"text","text":"fine <b>"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":5},"x":[1.0]}`
	asked       = `{"model":"m", "max_tokens":64,"x_future":{"a":1.0},"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"x_block"}]}]}`
)

// native makes the channels of these ids speak Messages.
func native(w *world, ids string) {
	for i := range w.plan.chain.Links {
		if c := w.plan.chain.Links[i].Channel; strings.Contains(ids, c.ID) {
			c.Dialect, c.URL = anthropic.New(w.client), "http://"+c.ID
		}
	}
	w.exec.Surfaces[contract.SurfaceMessages] = messages.Surface{}
}

// sentTo keeps what a handler gets.
func sentTo(seen *[]*http.Request, bodies *[]string, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		body, _ := io.ReadAll(r.Body)
		*seen, *bodies = append(*seen, r), append(*bodies, string(body))
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		h(w, r, n)
	}
}

func (w *world) ask(ctx context.Context, body string, change ...func(*contract.Request)) (*answer, execute.Outcome) {
	var a answer
	req := &contract.Request{
		ID: "r1", Model: "m", Stream: strings.Contains(body, `"stream":true`), ReceivedAt: time.Now(), Operation: contract.Chat, Surface: contract.SurfaceMessages,
		Traits: contract.Traits{Tokens: 7}, Headers: [][2]string{{"Anthropic-Version", "2026-10-21"}, {"Anthropic-Beta", "one,two"}},
		Decision: &contract.Decision{Model: "m", PinProvider: true, Configured: true, Reason: contract.ReasonModelHint},
	}
	for _, fn := range change {
		fn(req)
	}
	out := w.exec.Run(ctx, execute.Job{Body: []byte(body), Request: req}, &a)
	return &a, out
}

func asStream(body string) string {
	return strings.Replace(body, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)
}

// between a client and a provider of one protocol, bytes and headers pass, and the ledger counts all the same.
func TestBypass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen []*http.Request
		var bodies []string
		w := setup(t, map[string]handler{"a": sentTo(&seen, &bodies, inTurn(status(200, nativeWhole), events(nativeAll), events(nativeStart, nativeText, nativeDelta)))})
		defer w.close()
		native(w, "a")

		got, out := w.ask(t.Context(), asked)
		require.Equal(t, nativeWhole, got.text())
		require.Equal(t, 200, got.head.Status)
		require.Equal(t, int64(3), out.Usage.Prompt)
		require.Equal(t, int64(5), out.Usage.Completion)
		require.Equal(t, contract.EndpointMessages, out.Usage.Endpoint)
		require.Equal(t, strings.Replace(asked, `"m"`, `"real-a"`, 1), bodies[0])
		require.Equal(t, "/v1/messages", seen[0].URL.Path)
		require.Equal(t, "2026-10-21", seen[0].Header.Get("Anthropic-Version"))
		require.Equal(t, "one,two", seen[0].Header.Get("Anthropic-Beta"))
		require.Equal(t, "key-of-a", seen[0].Header.Get("X-Api-Key"))

		got, out = w.ask(t.Context(), asStream(asked))
		require.Equal(t, nativeAll, got.text())
		require.Equal(t, int64(3), out.Usage.Prompt)
		require.Equal(t, int64(15), out.Usage.Completion)
		require.Equal(t, "success", out.Usage.Status)

		got, _ = w.ask(t.Context(), asStream(asked)) // some servers leave out the last event
		require.Equal(t, nativeStart+nativeText+nativeDelta+nativeStop, got.text())
		w.idle()
	})
}

// a chain may mix both, in either order; what the hub has no words for goes to the one that takes it.
func TestBypassAndFailover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, map[string]handler{"a": inTurn(events(nativeStart, nativePing, nativeError), status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)), "b": reply("from b")})
		defer w.close()
		native(w, "a")
		plain := `{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"hi"}]}`
		got, _ := w.ask(t.Context(), asStream(plain))
		require.Equal(t, 1, strings.Count(got.text(), "event: message_start"))
		require.Contains(t, got.text(), `"text":"from b"`)
		require.NotContains(t, got.text(), "Overloaded")
		require.True(t, strings.HasSuffix(got.text(), nativeStop))
		got, _ = w.ask(t.Context(), plain)
		require.Equal(t, "from b", gjson.Get(got.text(), "content.0.text").Str)

		got, _ = w.ask(t.Context(), asked) // b can't have it, a is overloaded
		require.Equal(t, http.StatusServiceUnavailable, got.head.Status)
		require.Equal(t, 2, w.called("b"))
	})
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, map[string]handler{"a": status(503, "{}"), "b": events(nativeAll)})
		defer w.close()
		native(w, "b")
		plain := `{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"hi"}]}`
		got, _ := w.ask(t.Context(), asStream(plain))
		require.Equal(t, nativeAll, got.text())
		require.Equal(t, 1, w.called("a"))
		got, _ = w.ask(t.Context(), asStream(asked))
		require.Equal(t, nativeAll, got.text())
		require.Equal(t, 1, w.called("a"), "it has no words for an x_block")
	})
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, map[string]handler{"a": reply("a"), "b": reply("b")})
		defer w.close()
		native(w, "")
		got, _ := w.ask(t.Context(), asked)
		require.Equal(t, http.StatusBadRequest, got.head.Status)
		require.Contains(t, gjson.Get(got.text(), "error.message").Str, "messages.0.content.1.type")
		require.Equal(t, "r1", gjson.Get(got.text(), "request_id").Str)
		require.Zero(t, w.called("a")+w.called("b"))
	})
}

// after content, the provider's own error passes, without its key; a stream that is cut ends with an error of the gateway.
func TestBypassBreaksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := strings.Replace(nativeError, "Overloaded", "key-of-a is bad", 1)
		w := setup(t, map[string]handler{"a": inTurn(events(nativeStart, nativeText, failed), events(nativeStart, nativeText)), "b": reply("b")})
		defer w.close()
		native(w, "a")
		got, out := w.ask(t.Context(), asStream(asked))
		require.Equal(t, nativeStart+nativeText+strings.Replace(failed, "key-of-a", "[key]", 1), got.text())
		require.Contains(t, out.Usage.Status, "error")
		got, _ = w.ask(t.Context(), asStream(asked))
		require.True(t, strings.HasPrefix(got.text(), nativeStart+nativeText+"event: error\ndata: "), got.text())
		require.NotContains(t, got.text(), "message_stop")
		require.Zero(t, w.called("b"))
	})
}

// whatever is to be changed ends the bypass: the dialect translates, and the patch is in the hub's words.
func TestBypassEnds(t *testing.T) {
	t.Parallel()
	patch, err := openai.CompilePatch([]byte(`{"max_tokens":9}`))
	require.NoError(t, err)
	for name, change := range map[string]func(l *execute.Link){
		"patch":          func(l *execute.Link) { l.Patch = patch },
		"defaults":       func(l *execute.Link) { l.Defaults = patch },
		"think tags":     func(l *execute.Link) { l.Channel.Think = stream.ThinkSplit },
		"session header": func(l *execute.Link) { l.Channel.SessionHeader = "X-Dialogue" },
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen []*http.Request
			var bodies []string
			w := setup(t, map[string]handler{"a": sentTo(&seen, &bodies, status(200, nativeWhole))})
			defer w.close()
			native(w, "a")
			w.exec.Dialogues = dialogues{}
			links := w.plan.chain.Links
			change(&links[0])
			w.plan.chain = execute.NewChain(links)
			got, _ := w.ask(t.Context(), `{"model":"m","max_tokens":64,"x_future":1,"messages":[{"role":"user","content":"hi"}]}`)
			require.Equal(t, "fine <b>", gjson.Get(got.text(), "content.0.text").Str, name)
			require.False(t, gjson.Get(got.text(), "x").Exists(), name)
			require.NotContains(t, bodies[0], "x_future", name)
			require.Equal(t, "real-a", gjson.Get(bodies[0], "model").Str)
			if name == "patch" {
				require.Equal(t, int64(9), gjson.Get(bodies[0], "max_tokens").Int())
			}
		})
	}
}

type dialogues struct{}

func (dialogues) ID(context.Context, []byte) (string, bool) { return "d1", true }

// also where the bypass ends, a provider of the protocol gets blocks, tools and thinking as the client wrote them.
func TestBypassEndsGently(t *testing.T) {
	t.Parallel()
	patch, err := openai.CompilePatch([]byte(`{"temperature":0.5}`))
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var seen []*http.Request
		var bodies []string
		w := setup(t, map[string]handler{"a": sentTo(&seen, &bodies, status(200, nativeWhole)), "b": reply("b")})
		defer w.close()
		native(w, "a")
		links := w.plan.chain.Links
		links[0].Patch = patch
		w.plan.chain = execute.NewChain(links)
		_, _ = w.ask(t.Context(), `{"model":"m","max_tokens":6400,"session_id":"s","thinking":{"type":"enabled","budget_tokens":2000},"stop_sequences":["END"],"system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}],
			"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"q"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"sig"},{"type":"tool_use","id":"c","name":"f","input":{"n":1.50}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r","cache_control":{"type":"ephemeral"}}]}]}`)
		require.Len(t, bodies, 1)
		for path, want := range map[string]string{
			"thinking.budget_tokens": "2000", "stop_sequences.0": `"END"`, "system.0.cache_control.type": `"ephemeral"`, "tools.0.cache_control.type": `"ephemeral"`,
			"messages.1.content.0.signature": `"sig"`, "messages.1.content.1.input.n": "1.50", "messages.2.content.0.cache_control.type": `"ephemeral"`,
		} {
			require.Equal(t, want, gjson.Get(bodies[0], path).Raw, path+" in "+bodies[0])
		}
		require.NotContains(t, bodies[0], "session_id")
	})
}

// R-579, C-07: a routed client gets the name that it asked for, and everything else as it came.
func TestBypassOfRoutedRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, map[string]handler{"a": inTurn(status(200, nativeWhole), events(nativeAll))})
		defer w.close()
		native(w, "a")
		routed := func(r *contract.Request) { r.Model, r.Decision.Configured, r.Decision.Provider = "auto", false, "pa" }
		got, _ := w.ask(t.Context(), asked, routed)
		require.Equal(t, strings.Replace(nativeWhole, `"real"`, `"auto"`, 1), got.text())
		got, _ = w.ask(t.Context(), asStream(asked), routed)
		require.Equal(t, strings.Replace(nativeAll, `"real"`, `"auto"`, 1), got.text())
	})
}

// STR-10: a whole answer where events were asked for becomes a stream.
func TestBypassOfTheOtherKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, map[string]handler{"a": inTurn(status(200, nativeWhole), events(nativeAll))})
		defer w.close()
		native(w, "a")
		got, _ := w.ask(t.Context(), asStream(asked))
		require.Contains(t, got.text(), `"text_delta","text":"fine <b>"`)
		require.True(t, strings.HasSuffix(got.text(), nativeStop))
		got, _ = w.ask(t.Context(), asked)
		require.Equal(t, "é 1.50", gjson.Get(got.text(), "content.0.text").Str)
	})
}

// tokens are counted by a provider that can, else they are estimated.
func TestCountTokens(t *testing.T) {
	t.Parallel()
	count := func(r *contract.Request) { r.Operation = contract.CountTokens }
	body := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	const counted = `{"input_tokens": 1234}`
	refused := `{"type":"error","error":{"type":"invalid_request_error","message":"no such role"}}`
	for name, tt := range map[string]struct {
		native string
		a      handler
		status int
		want   string
		calls  int
	}{
		"native":               {"a", status(200, counted), 200, counted, 1},
		"no such route":        {"a", status(404, `{"error":{"message":"no route"}}`), 200, `{"input_tokens":7}`, 1},
		"failing":              {"a", status(500, `{}`), 200, `{"input_tokens":7}`, 1},
		"no count":             {"a", status(200, `{"x":1}`), 200, `{"input_tokens":7}`, 1},
		"refused":              {"a", status(400, refused), 400, "no such role", 1},
		"of another protocol":  {"", status(200, counted), 200, `{"input_tokens":7}`, 0},
		"one of each, b first": {"b", status(200, counted), 200, `{"input_tokens":7}`, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen []*http.Request
			var bodies []string
			w := setup(t, map[string]handler{"a": sentTo(&seen, &bodies, tt.a), "b": status(500, "{}")})
			defer w.close()
			native(w, tt.native)
			got, out := w.ask(t.Context(), body, count)
			require.Equal(t, tt.status, got.head.Status, name)
			require.Contains(t, got.text(), tt.want, name)
			require.Equal(t, tt.calls, w.called("a"), name)
			require.NotNil(t, got.end)
			require.Equal(t, contract.Endpoint("count_tokens"), out.Usage.Endpoint)
			if tt.calls > 0 {
				require.Equal(t, "/v1/messages/count_tokens", seen[0].URL.Path)
				require.Equal(t, `{"model":"real-a","messages":[{"role":"user","content":"hi"}]}`, bodies[0])
				require.Equal(t, "2026-10-21", seen[0].Header.Get("Anthropic-Version"))
			}
			if tt.status == 200 {
				require.Equal(t, "success", out.Usage.Status)
			}
			w.idle()
		})
	}
}

// an effort that the upstream refuses is taken back: the client asked for thinking, not for this member.
func TestEffortIsTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen []*http.Request
		var bodies []string
		w := setup(t, map[string]handler{"a": sentTo(&seen, &bodies, inTurn(status(400, `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort","type":"invalid_request_error"}}`), reply("fine")))})
		defer w.close()
		native(w, "")
		got, _ := w.ask(t.Context(), `{"model":"m","max_tokens":64,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[{"role":"user","content":"hi"}]}`)
		require.Equal(t, "fine", gjson.Get(got.text(), "content.0.text").Str)
		require.Len(t, bodies, 2)
		require.Equal(t, "low", gjson.Get(bodies[0], "reasoning_effort").Str)
		require.False(t, gjson.Get(bodies[1], "reasoning_effort").Exists())
	})
}

// kept keeps the turns of a test.
type kept struct{ turns []*contract.Turn }

func (k *kept) Keep(_ context.Context, t *contract.Turn) error {
	k.turns = append(k.turns, t)
	return nil
}

// an answer in a session is kept with the provider's own blocks, whole and streamed.
func TestBypassInSession(t *testing.T) {
	t.Parallel()
	const (
		thinking = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"so\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"sig\"}}\n\n" +
			"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
		search = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\",\"input\":{}}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"q\\\":\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\" 1.50}\"}}\n\n" +
			"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n"
		cited = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"text\",\"text\":\"\",\"citations\":[]}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"citations_delta\",\"citation\":{\"url\":\"u\"}}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"text_delta\",\"text\":\"fi\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"text_delta\",\"text\":\"ne\"}}\n\n" +
			"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n"
	)
	synctest.Test(t, func(t *testing.T) {
		var turns kept
		w := setup(t, map[string]handler{"a": inTurn(events(nativeStart+thinking+search+cited+nativeDelta+nativeStop), status(200, nativeWhole), events(nativeStart+thinking+search)), "b": reply("from b")})
		defer w.close()
		native(w, "a")
		w.exec.Turns = &turns
		w.exec.Front = func(*contract.Request, time.Time) []byte {
			return []byte(`{"role":"system","content":"[SYSTEM CONTEXT]"}`)
		}
		session := func(r *contract.Request) { r.SessionID = "s1" }
		got, _ := w.ask(t.Context(), asStream(asked), session)
		require.Equal(t, nativeStart+thinking+search+cited+nativeDelta+nativeStop, got.text())
		_, _ = w.ask(t.Context(), asked, session)
		_, _ = w.ask(t.Context(), asStream(asked), session)
		require.Len(t, turns.turns, 3)
		first, second, third := turns.turns[0], turns.turns[1], turns.turns[2]
		require.Equal(t, contract.TurnAnswered, first.Kind)
		require.Equal(t, `{"role":"assistant","content":[{"type":"thinking","thinking":"so","signature":"sig"},{"type":"server_tool_use","id":"s","name":"web_search","input":{"q": 1.50}},`+
			`{"type":"text","text":"fine","citations":[{"url":"u"}]}]}`, string(first.Message(0).Original))
		require.Equal(t, "fine", gjson.Get(first.Messages[0], "content").Str)
		require.Equal(t, "sig", gjson.Get(first.Messages[0], "reasoning_details.0.signature").Str)
		require.Equal(t, `{"role":"assistant","content":[{"type":"text","text":"fine <b>"}]}`, string(second.Message(0).Original))
		require.Equal(t, contract.TurnFailed, third.Kind)
	})
}

// what SDKs act upon passes with the error of a provider that speaks their protocol.
func TestBypassOfErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := `{"type":"error","error":{"type":"invalid_request_error","message":"lost","details":{"error_code":"thread_not_found","key":"key-of-a"}}}`
		w := setup(t, map[string]handler{"a": status(400, refused), "b": reply("b")})
		defer w.close()
		native(w, "a")
		got, _ := w.ask(t.Context(), `{"model":"m","max_tokens":9,"thread":{"type":"continue","previous_message_id":"x"},"messages":[]}`)
		require.Equal(t, http.StatusBadRequest, got.head.Status)
		require.Equal(t, `{"error_code":"thread_not_found","key":"[key]"}`, gjson.Get(got.text(), "error.details").Raw)
		require.Zero(t, w.called("b"), "it does not have the thread")
	})
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, map[string]handler{"a": reply("a")})
		defer w.close()
		native(w, "")
		got, _ := w.ask(t.Context(), `{"model":"m","max_tokens":9,"thread":{"type":"create"},"messages":[{"role":"user","content":"hi"}]}`)
		require.Equal(t, http.StatusBadRequest, got.head.Status)
		require.Equal(t, "thread_unsupported_request", gjson.Get(got.text(), "error.details.error_code").Str)
		require.Zero(t, w.called("a"))
	})
}

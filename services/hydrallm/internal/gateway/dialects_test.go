package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

// protocols is a gateway before an Anthropic, a Gemini in its own protocol, and a provider that speaks OpenAI's.
type protocols struct {
	running
	anthropic, gemini, plain *fakellm.Server
}

func startProtocols(t *testing.T) *protocols {
	t.Helper()
	x := &protocols{anthropic: fakellm.Start(t), gemini: fakellm.Start(t), plain: fakellm.Start(t)}
	x.anthropic.Handle(spoken(fakellm.Request.Streams, "anthropic/stream-text.sse", "anthropic/message-text.json"))
	x.gemini.Handle(spoken(func(r fakellm.Request) bool { return strings.Contains(r.Path, ":streamGenerateContent") },
		"gemini-native/stream-text.sse", "gemini-native/generate.json"))
	x.plain.Handle(fakellm.Talk("plain words"))
	x.anthropic.Offer("beta-1")
	x.gemini.Page("/v1beta/models", `{"models":[
		{"name":"models/gamma-flash","inputTokenLimit":1048576,"supportedGenerationMethods":["generateContent"]}]}`)
	x.running = serve(t, configured(t, freeport.Port(t), fmt.Sprintf(`
providers:
  - {id: anthropic, url: "%s", key: key-of-anthropic}
  - {id: gemini, dialect: gemini, url: "%s/v1beta", keys: [key-of-gemini]}
  - {id: plain, url: "%s/v1", key: key-of-plain}
upstreams:
  - {id: claude, provider: anthropic, model: beta-1}
  - {id: gamma, provider: gemini, model: gamma-flash}
  - {id: gpt, provider: plain, model: real}
models:
  - {name: claude, upstreams: [claude]}
  - {name: gamma, upstreams: [gamma]}
  - {name: claude-first, upstreams: [claude, gpt]}
  - {name: claude-last, upstreams: [gpt, claude]}
routing: {final_fallback: "", aliases: {}}
`, x.anthropic.URL(), x.gemini.URL(), x.plain.URL())))
	return x
}

// clients of the OpenAI API talk to providers with protocols of their own, through a model of the configuration and by name.
func TestProtocols(t *testing.T) {
	t.Parallel()
	x := startProtocols(t)
	x.awaitListed(t, "anthropic/beta-1")
	x.awaitListed(t, "gemini/gamma-flash")
	q := func(model string) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage("Be brief."), openai.UserMessage("Which colour?"),
		}}
	}
	for _, name := range []string{"claude", "anthropic/beta-1", "ANTHROPIC/beta-1", "gamma", "gemini/gamma-flash", "gemini/auto"} {
		for _, stream := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " stream", false: ""}[stream], func(t *testing.T) {
				t.Parallel()
				a := x.mustAsk(t, stream, q(name))
				require.Equal(t, "The lamp is green.", a.text)
				require.Equal(t, "stop", gjson.Get(a.raw, "choices.0.finish_reason").Str, a.raw)
				require.Positive(t, a.usage.Get("total_tokens").Int())
				if strings.Contains(name, "/") {
					require.Equal(t, name, a.model)
					require.Equal(t, a.header.Get("X-Gateway-Model"), a.usage.Get("gateway_model").Str)
				}
			})
		}
	}
}

// What the providers get: their own protocol, with their own way to send a key.
func TestProtocolsOnTheWire(t *testing.T) {
	t.Parallel()
	x := startProtocols(t)
	x.mustAsk(t, false, question("claude"))
	r := last(x.anthropic)
	require.Equal(t, "/v1/messages", r.Path)
	require.Equal(t, []string{"key-of-anthropic", "", "2023-06-01"}, []string{r.Header.Get("X-Api-Key"), r.Key(), r.Header.Get("Anthropic-Version")})
	require.Equal(t, "beta-1", r.Model())
	require.Positive(t, gjson.GetBytes(r.Body, "max_tokens").Int())

	for stream, path := range map[bool]string{false: "/v1beta/models/gamma-flash:generateContent", true: "/v1beta/models/gamma-flash:streamGenerateContent?alt=sse"} {
		x.mustAsk(t, stream, question("gamma"))
		r = last(x.gemini)
		require.Equal(t, path, r.Path)
		require.Equal(t, []string{"key-of-gemini", ""}, []string{r.Header.Get("X-Goog-Api-Key"), r.Key()})
		require.Equal(t, "hi", gjson.GetBytes(r.Body, "contents.0.parts.0.text").Str)
	}
}

// A chain goes from one protocol to another, in both directions, before any content: nothing of the first upstream reaches the client.
func TestFailoverBetweenProtocols(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		model  string
		stream bool
		first  fakellm.Answer
		text   string
	}{
		"from Anthropic":                   {"claude-first", false, sample("anthropic/error-529.json"), "plain words"},
		"from Anthropic, stream":           {"claude-first", true, sample("anthropic/error-529.json"), "plain words"},
		"from Anthropic, inside a stream":  {"claude-first", true, sample("anthropic/stream-early-error.sse"), "plain words"},
		"to Anthropic":                     {"claude-last", false, fakellm.Error(http.StatusInternalServerError, "boom"), "The lamp is green."},
		"to Anthropic, stream":             {"claude-last", true, fakellm.Error(http.StatusInternalServerError, "boom"), "The lamp is green."},
		"to Anthropic, inside of a stream": {"claude-last", true, fakellm.Stream().First(1, fakellm.Cut), "The lamp is green."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := startProtocols(t)
			if tt.model == "claude-first" {
				x.anthropic.Queue(tt.first)
			} else {
				x.plain.Queue(tt.first)
			}
			a := x.mustAsk(t, tt.stream, question(tt.model))
			require.Equal(t, tt.text, a.text)
			require.Equal(t, "2", a.header.Get("X-Gateway-Attempts"))
			require.Len(t, x.anthropic.Requests(), 1)
			require.Len(t, x.plain.Requests(), 1)
			require.Equal(t, "real", last(x.plain).Model())
		})
	}
}

// Calls of tools arrive in the form that the SDK puts together, with whole arguments and an id each.
func TestToolsThroughProtocols(t *testing.T) {
	t.Parallel()
	x := startProtocols(t)
	x.anthropic.Handle(spoken(fakellm.Request.Streams, "anthropic/stream-tools.sse", "anthropic/message-tools.json"))
	x.gemini.Handle(always(sample("gemini-native/stream-tools.sse")))
	for _, model := range []string{"claude", "gamma"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			q := question(model)
			q.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
				Name: "get_time", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{}},
			})}
			c := x.sdk(t)
			stream := c.Chat.Completions.NewStreaming(t.Context(), q)
			defer func() { require.NoError(t, stream.Close()) }()
			var acc openai.ChatCompletionAccumulator
			for stream.Next() {
				require.True(t, acc.AddChunk(stream.Current()))
			}
			require.NoError(t, stream.Err())
			require.Equal(t, "tool_calls", acc.Choices[0].FinishReason)
			calls := acc.Choices[0].Message.ToolCalls
			require.Len(t, calls, 2)
			require.Equal(t, []string{"get_time", "list_rooms"}, []string{calls[0].Function.Name, calls[1].Function.Name})
			require.JSONEq(t, `{"city":"Oslo"}`, calls[0].Function.Arguments)
			require.JSONEq(t, `{}`, calls[1].Function.Arguments)
			require.NotEmpty(t, calls[0].ID)
			require.NotEqual(t, calls[0].ID, calls[1].ID)
		})
	}
}

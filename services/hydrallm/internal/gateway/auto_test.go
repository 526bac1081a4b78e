package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

// cloud is a gateway with three cloud providers and a local Ollama.
type cloud struct {
	running
	gemini, groq, cerebras, ollama *fakellm.Server
}

func startCloud(t *testing.T) *cloud {
	t.Helper()
	x := &cloud{gemini: fakellm.Start(t), groq: fakellm.Start(t), cerebras: fakellm.Start(t)}
	var local string
	x.ollama, local = startOllama(t)
	for name, fake := range map[string]*fakellm.Server{"gemini": x.gemini, "groq": x.groq, "cerebras": x.cerebras} {
		fake.Handle(fakellm.Talk("from " + name))
	}
	x.gemini.Offer("gemini-9-flash", "gemini-9-pro", "gemini-embedding-001")
	x.groq.Offer("Vendor/Fast-120B", "whisper-large")
	x.cerebras.Offer("other-120b")
	x.running = serve(t, configured(t, freeport.Port(t), fmt.Sprintf(`
providers:
  - id: gemini
    url: "%s/v1"
    keys: [{value: gemini-free-key, tier: free}, {value: gemini-premium-key, tier: premium}]
    default_models: {free: gemini-9-flash, premium: gemini-9-pro}
  - {id: groq, url: "%s/v1", keys: [groq-key-1], default_models: {free: Vendor/Fast-120B}}
  - {id: cerebras, url: "%s/v1", keys: [cerebras-key-1], default_models: {free: other-120b}}
  - {id: ollama, url: "%s/v1"}
upstreams: [{id: u, provider: groq, model: Vendor/Fast-120B}]
models: [{name: "House/Model:1", upstreams: [u]}]
`, x.gemini.URL(), x.groq.URL(), x.cerebras.URL(), local)))
	return x
}

// requests counts the calls of each provider.
func (x *cloud) requests() map[string]int {
	return map[string]int{
		"gemini": len(x.gemini.Requests()), "groq": len(x.groq.Requests()), "cerebras": len(x.cerebras.Requests()), "ollama": len(x.ollama.Requests()),
	}
}

func last(s *fakellm.Server) fakellm.Request {
	all := s.Requests()
	return all[len(all)-1]
}

// asked counts the requests for a model.
func asked(s *fakellm.Server, model string) (n int) {
	for _, r := range s.Requests() {
		if r.Model() == model {
			n++
		}
	}
	return n
}

// Section 19, scenario 17: small requests take turns on the fast providers; one of 8192 tokens goes to Gemini, to its
// premium model with its premium key.
func TestAutoBySize(t *testing.T) {
	t.Parallel()
	x := startCloud(t)
	for i := range 4 {
		q := question([]string{"auto", "", "default", "mllm/auto"}[i])
		q.MaxTokens = openai.Int(8190) // and one for the text
		a := x.mustAsk(t, i%2 == 1, q)
		require.Contains(t, []string{"from groq", "from cerebras"}, a.text)
		if a.text == "from groq" {
			a.by(t, "groq", "Vendor/Fast-120B", "TOKEN_OPTIMIZED")
		} else {
			a.by(t, "cerebras", "other-120b", "TOKEN_OPTIMIZED")
		}
		require.Equal(t, "1", a.header.Get("X-Gateway-Attempts"))
	}
	require.Equal(t, map[string]int{"groq": 2, "cerebras": 2, "gemini": 0, "ollama": 0}, x.requests())

	q := question("auto")
	q.MaxTokens = openai.Int(8191)
	a := x.mustAsk(t, false, q)
	require.Equal(t, "auto", a.model, "the name that the client sent (C-07)")
	a.by(t, "gemini", "gemini-9-pro", "TOKEN_OPTIMIZED")
	require.Equal(t, "gemini-premium-key", last(x.gemini).Key())
	require.Equal(t, "gemini-9-pro", last(x.gemini).Model())
	require.Equal(t, map[string]int{"groq": 2, "cerebras": 2, "gemini": 1, "ollama": 0}, x.requests())
}

// images reach a model that takes them, as the client sent them.
func TestAutoWithImages(t *testing.T) {
	t.Parallel()
	x := startCloud(t)
	const image = "data:image/png;base64,iVBORw0KGgo="
	for _, stream := range []bool{false, true} {
		a := x.mustAsk(t, stream, openai.ChatCompletionNewParams{Model: "auto", Messages: []openai.ChatCompletionMessageParamUnion{
			openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
				openai.TextContentPart("What is it?"), openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: image}),
			}),
		}})
		a.by(t, "gemini", "gemini-9-pro", "MULTIMODAL_ANALYSIS")
		require.False(t, a.usage.Get("gateway_warning").Exists())
		require.Equal(t, image, gjson.GetBytes(last(x.gemini).Body, "messages.1.content.1.image_url.url").Str)
	}
	a := x.mustAsk(t, false, openai.ChatCompletionNewParams{Model: "auto", Messages: []openai.ChatCompletionMessageParamUnion{
		openai.UserMessage("image_url of a.png"),
	}})
	require.Equal(t, "TOKEN_OPTIMIZED", a.header.Get("X-Routing-Reason"), "a text is no image")
}

// the upstream is always asked for the usage of a stream, for the ledger; a client that did not ask does not get it.
func TestAutoStreamUsage(t *testing.T) {
	t.Parallel()
	x := startCloud(t)
	x.groq.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.SSE(
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}`,
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`,
			fakellm.Done)
	})
	a := x.mustAsk(t, true, question("groq/auto"))
	a.by(t, "groq", "Vendor/Fast-120B", "USER_HINT")
	require.Equal(t, int64(7), a.usage.Get("total_tokens").Int())
	require.Equal(t, int64(0), a.usage.Get("gateway_key_index").Int())
	require.Equal(t, "groq/auto", a.model)

	status, body := x.do(t, http.MethodPost, "/v1/chat/completions", `{"model":"groq/auto","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, body, `"usage":{`)
	require.True(t, strings.HasSuffix(body, "data: [DONE]\n\n"))
	for _, r := range x.groq.Requests() {
		require.True(t, gjson.GetBytes(r.Body, "stream_options.include_usage").Bool())
	}
}

// R-029, scenario 29: a tool call and its result survive both directions, whichever provider is chosen.
func TestAutoTools(t *testing.T) {
	t.Parallel()
	x := startCloud(t)
	turn := func(r fakellm.Request) fakellm.Answer {
		if gjson.GetBytes(r.Body, "messages.#").Int() > 2 { // the block of the gateway and the question
			return fakellm.Chat("It is 21 degrees.")
		}
		return fakellm.JSON(http.StatusOK, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls",
			"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]}}],
			"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}
	x.groq.Handle(turn)
	x.cerebras.Handle(turn)
	c := x.sdk(t)
	q := question("auto")
	q.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "weather", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
	})}
	got, err := c.Chat.Completions.New(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, "tool_calls", got.Choices[0].FinishReason)
	call := got.Choices[0].Message.ToolCalls[0]
	require.JSONEq(t, `{"city":"Oslo"}`, call.Function.Arguments)
	q.Messages = append(q.Messages, got.Choices[0].Message.ToParam(), openai.ToolMessage("21 degrees", call.ID))
	got, err = c.Chat.Completions.New(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, "It is 21 degrees.", got.Choices[0].Message.Content)

	require.Equal(t, map[string]int{"groq": 1, "cerebras": 1, "gemini": 0, "ollama": 0}, x.requests())
	second := x.groq.Requests()[0]
	if gjson.GetBytes(second.Body, "messages.#").Int() == 2 {
		second = x.cerebras.Requests()[0]
	}
	require.Equal(t, "weather", gjson.GetBytes(second.Body, "tools.0.function.name").Str)
	require.Equal(t, "call_1", gjson.GetBytes(second.Body, "messages.2.tool_calls.0.id").Str)
	require.JSONEq(t, `{"city":"Oslo"}`, gjson.GetBytes(second.Body, "messages.2.tool_calls.0.function.arguments").Str)
	require.Equal(t, "call_1", gjson.GetBytes(second.Body, "messages.3.tool_call_id").Str)
}

// R-070..R-078, B-14: what a name leads to, and what is disclosed of it. The model of the answer is the name that the client sent.
func TestNames(t *testing.T) {
	t.Parallel()
	x := startCloud(t)
	fakes := map[string]*fakellm.Server{"gemini": x.gemini, "groq": x.groq, "cerebras": x.cerebras, "LOCAL-AGENT": x.ollama}
	tests := map[string]struct{ name, provider, model string }{
		"slashes in the model":           {"groq/Vendor/Fast-120B", "groq", "Vendor/Fast-120B"},
		"provider in upper case":         {"GROQ/Vendor/Other-7B", "groq", "Vendor/Other-7B"},
		"provider of a known other name": {"cerebras/gemini-x", "cerebras", "gemini-x"},
		"alias":                          {"gpt-4o", "gemini", "gemini-2.5-pro"},
		"alias in another case":          {"GPT-4o-Mini", "gemini", "gemini-2.5-flash"},
		"inferred":                       {"llama-3.3-70b", "groq", "llama-3.3-70b"},
		"agent":                          {"ollama/Qwen3:8B", "LOCAL-AGENT", "Qwen3:8B"},
		"agent with its path":            {"local-agent/ollama/qwen3:8b", "LOCAL-AGENT", "qwen3:8b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []bool{false, true} {
				a := x.mustAsk(t, stream, question(tt.name))
				require.Equal(t, tt.name, a.model)
				shown := tt.model
				if tt.provider == "LOCAL-AGENT" {
					shown = "LOCAL-AGENT/OLLAMA/" + tt.model
				}
				a.by(t, tt.provider, shown, "USER_HINT")
			}
			require.Equal(t, 2, asked(fakes[tt.provider], tt.model))
		})
	}
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		_, err := x.ask(t, false, question("nothing-like-this"))
		require.Equal(t, "model_not_found", refused(t, err, http.StatusNotFound).Code)
		for _, fake := range fakes {
			require.Zero(t, asked(fake, "nothing-like-this"))
		}
	})
}

// R-046..R-050: the list holds models of the configuration, virtual ones and discovered ones, and each of them can be asked.
func TestEveryListedModelRoutes(t *testing.T) {
	t.Parallel()
	x := startCloud(t)
	vectors := fakellm.JSON(http.StatusOK, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`)
	for _, fake := range []*fakellm.Server{x.gemini, x.ollama} {
		fake.Handle(func(r fakellm.Request) fakellm.Answer {
			if strings.HasSuffix(r.Path, "/embeddings") {
				return vectors
			}
			return fakellm.Chat("hi")
		})
	}
	want := []string{
		"House/Model:1", "auto", "gemini/auto", "groq/auto", "cerebras/auto", "LOCAL-AGENT/OLLAMA/auto", "gemini/gemini-9-flash",
		"gemini/gemini-9-pro", "gemini/gemini-embedding-001", "groq/Vendor/Fast-120B", "cerebras/other-120b",
		"LOCAL-AGENT/OLLAMA/qwen3:8b", "LOCAL-AGENT/OLLAMA/bge-m3:latest",
	}
	slices.Sort(want)
	var list []gjson.Result
	await.True(t, func() bool {
		_, body := x.do(t, http.MethodGet, "/v1/models", "")
		list = gjson.Get(body, "data").Array()
		return len(list) >= len(want)
	})
	var got []string
	for _, m := range list {
		got = append(got, m.Get("id").Str)
	}
	slices.Sort(got)
	require.Equal(t, want, got, "each once, and nothing that neither chats nor makes vectors")

	c := x.sdk(t)
	var asking sync.WaitGroup
	for _, m := range list {
		asking.Go(func() {
			id := m.Get("id").Str
			var err error
			if m.Get("description").Str == "For embeddings" {
				_, err = c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
					Model: id, Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("text")},
				})
			} else {
				_, err = c.Chat.Completions.New(t.Context(), question(id))
			}
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	asking.Wait()
}

package gateway_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

// always answers every request alike.
func always(a fakellm.Answer) func(fakellm.Request) fakellm.Answer {
	return func(fakellm.Request) fakellm.Answer { return a }
}

// when a provider fails, another one answers with its own model, and the answer says so.
func TestAutoFailover(t *testing.T) {
	t.Parallel()
	broken, limited := fakellm.Error(http.StatusInternalServerError, "secret detail"), sample("groq/error-429-tpm.json")
	half := fakellm.SSE(`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, `{"error":{"message":"secret detail"}}`)
	tests := map[string]struct {
		failing                 map[string]fakellm.Answer
		stream                  bool
		provider, model, reason string
		retries                 []int // statuses of the attempts before
	}{
		"a provider is broken": {
			failing:  map[string]fakellm.Answer{"groq": broken, "cerebras": broken},
			provider: "gemini", model: "gemini-9-pro", reason: "KEY_AVAILABILITY", retries: []int{500},
		},
		"a provider is limited": {
			failing:  map[string]fakellm.Answer{"groq": limited, "cerebras": limited},
			provider: "gemini", model: "gemini-9-pro", reason: "RATE_LIMIT", retries: []int{429},
		},
		"a stream fails before its content": {
			failing: map[string]fakellm.Answer{"groq": half, "cerebras": half}, stream: true,
			provider: "gemini", model: "gemini-9-pro", reason: "KEY_AVAILABILITY", retries: []int{200},
		},
		"no cloud provider works": {
			failing:  map[string]fakellm.Answer{"groq": broken, "cerebras": broken, "gemini": broken},
			provider: "LOCAL-AGENT", model: "LOCAL-AGENT/OLLAMA/qwen3:8b", reason: "KEY_AVAILABILITY", retries: []int{500, 500, 500},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := startCloud(t)
			for provider, a := range tt.failing {
				map[string]*fakellm.Server{"groq": x.groq, "cerebras": x.cerebras, "gemini": x.gemini}[provider].Handle(always(a))
			}
			x.awaitListed(t, "LOCAL-AGENT/OLLAMA/qwen3:8b")
			a := x.mustAsk(t, tt.stream, question("auto"))
			a.by(t, tt.provider, tt.model, tt.reason)
			require.Equal(t, strconv.Itoa(len(tt.retries)+1), a.header.Get("X-Gateway-Attempts"))
			require.Equal(t, "auto", a.model)
			require.NotContains(t, a.raw, "secret detail")
			if tt.stream {
				return
			}
			parts := gjson.Get(a.raw, "choices.0.message.parts").Array()
			require.Len(t, parts, len(tt.retries), a.raw)
			for i, p := range parts {
				require.Equal(t, "retry", p.Get("type").Str)
				require.Equal(t, int64(tt.retries[i]), p.Get("data.error_code").Int())
			}
		})
	}
}

// awaitListed waits until discovery knows a model.
func (x running) awaitListed(t *testing.T, id string) {
	t.Helper()
	await.True(t, func() bool {
		status, _ := x.do(t, http.MethodGet, "/v1/models/"+id, "")
		return status == http.StatusOK
	})
}

// keyless is a gateway whose cloud provider has no key yet.
func keyless(t *testing.T) (groq, ollama *fakellm.Server, start func() running) {
	t.Helper()
	groq = fakellm.Start(t)
	groq.Handle(fakellm.Talk("from groq"))
	groq.Offer("Vendor/Fast-120B")
	ollama, local := startOllama(t)
	s := configured(t, freeport.Port(t), fmt.Sprintf(`
providers:
  - {id: groq, url: "%s/v1"}
  - {id: ollama, url: "%s/v1"}
`, groq.URL(), local))
	return groq, ollama, func() running { return serve(t, s) }
}

// Section 19, scenario 15: without a cloud key Ollama answers what is automatic and nobody else is called; a request for the
// provider is refused at once.
func TestWithoutCloudKeys(t *testing.T) {
	t.Parallel()
	groq, ollama, begin := keyless(t)
	x := begin()
	x.awaitListed(t, "LOCAL-AGENT/OLLAMA/qwen3:8b")
	for _, stream := range []bool{false, true} {
		for _, model := range []string{"auto", "gpt-4o"} {
			a := x.mustAsk(t, stream, question(model))
			require.Equal(t, "from ollama", a.text)
			require.Equal(t, model, a.model)
			a.by(t, "LOCAL-AGENT", "LOCAL-AGENT/OLLAMA/qwen3:8b", "KEY_AVAILABILITY")
			require.Equal(t, int64(0), a.usage.Get("gateway_key_index").Int())
		}
		for _, model := range []string{"groq/auto", "GROQ/default", "groq/Some/Model"} {
			_, err := x.ask(t, stream, question(model))
			require.Contains(t, refused(t, err, http.StatusServiceUnavailable).Message, "has no key")
		}
	}
	require.Empty(t, groq.Requests())
	require.Empty(t, groq.Listings())
	require.Len(t, ollama.Requests(), 4)

	ollama.Handle(always(fakellm.Error(http.StatusInternalServerError, "secret detail"))) // scenario 16
	_, err := x.ask(t, false, question("auto"))
	failure := refused(t, err, http.StatusServiceUnavailable)
	require.Equal(t, "all_upstreams_failed", failure.Code)
	require.NotContains(t, failure.RawJSON(), "secret detail")
}

// a key that is added while the gateway runs makes its provider usable, whose models are listed then, and is there again after a restart.
func TestKeysAddedAtRunTime(t *testing.T) {
	t.Parallel()
	groq, _, begin := keyless(t)
	x := begin()
	const body = `{"provider":"groq","keys":["added-key-1"," added-key-1 ",""]}`
	status, text := x.do(t, http.MethodPost, "/v1/admin/keys", body)
	require.Equal(t, http.StatusUnauthorized, status, text)
	status, text = x.do(t, http.MethodPost, "/v1/admin/keys", body, "X-Admin-Key", adminKey)
	require.Equal(t, http.StatusOK, status, text)
	require.JSONEq(t, `{"status":"success","added_count":1}`, text)
	x.awaitGroq(t)
	require.Equal(t, "added-key-1", last(groq).Key())
	x.awaitListed(t, "groq/Vendor/Fast-120B")
	require.NoError(t, x.stop())

	x = begin()
	x.awaitGroq(t)
	require.Equal(t, "added-key-1", last(groq).Key())
	status, text = x.do(t, http.MethodPost, "/v1/admin/keys", body, "X-Admin-Key", adminKey)
	require.Equal(t, http.StatusOK, status, text)
	require.JSONEq(t, `{"status":"success","added_count":0}`, text)
	_, text = x.do(t, http.MethodGet, "/v1/admin/status", "", "X-Admin-Key", adminKey)
	require.Equal(t, int64(1), gjson.Get(text, "providers.groq.active_keys").Int(), text)
	require.NotContains(t, text, "added-key-1")
}

// awaitGroq asks until Groq answers: the key has to come to the dispatcher.
func (x running) awaitGroq(t *testing.T) {
	t.Helper()
	await.True(t, func() bool {
		a, err := x.ask(t, false, question("groq/auto"))
		return err == nil && a.text == "from groq"
	})
}

// Embeddings go through the same keys; the answer comes in the form that the client asked for, whatever the provider sends.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	x := serve(t, configured(t, freeport.Port(t), fmt.Sprintf(`
providers: [{id: openai, url: "%s/v1", keys: [key-1-for-vectors, key-2-for-vectors]}]
routing: {final_fallback: "", aliases: {}}
`, fake.URL())))
	limited := fakellm.Error(http.StatusTooManyRequests, "slow down")
	good := fakellm.JSON(http.StatusOK, `{"object":"list","model":"small","data":[{"object":"embedding","index":0,"embedding":[0.5,-2]},
		{"object":"embedding","index":1,"embedding":[1,0]}],"usage":{"prompt_tokens":4,"total_tokens":4}}`)
	fake.Queue(limited, good)
	c := x.sdk(t)
	input := openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}}
	got, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: "openai/Small", Input: input})
	require.NoError(t, err)
	require.Equal(t, []float64{0.5, -2}, got.Data[0].Embedding)
	require.Equal(t, "openai/Small", got.Model)
	require.Equal(t, int64(4), got.Usage.TotalTokens)
	calls := fake.Requests()
	require.Len(t, calls, 2)
	require.NotEqual(t, calls[0].Key(), calls[1].Key(), "the limited key rests")
	require.Equal(t, []string{"/v1/embeddings", "Small"}, []string{calls[1].Path, calls[1].Model()})

	// What the Python SDK asks for unless it is told otherwise; the provider does not know it.
	fake.Queue(good)
	got, err = c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: "openai/Small", Input: input, EncodingFormat: openai.EmbeddingNewParamsEncodingFormatBase64,
	})
	if err == nil { // a later SDK may decode it
		require.Len(t, got.Data, 2)
	}
	fake.Queue(good)
	status, body := x.do(t, http.MethodPost, "/v1/embeddings", `{"model":"openai/Small","input":["a","b"],"encoding_format":"base64"}`)
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "AAAAPwAAAMA=", gjson.Get(body, "data.0.embedding").Str) // 0.5, -2 as little-endian float32

	for _, name := range []string{"auto", "openai/auto", "openai", "text-embedding-3-small"} { // no model is chosen for vectors
		_, err = c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: name, Input: input})
		require.Equal(t, "model_not_found", refused(t, err, http.StatusNotFound).Code, name)
	}
}

package discover_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

var plain = discover.Source{Provider: "p", Dialect: "openai", URL: "https://h/v1"}

func ids(models []modelindex.Model) []string {
	all := []string{}
	for _, m := range models {
		all = append(all, m.ID)
	}
	return all
}

// Lists come in many shapes, and hold what no client can use (URL-04).
func TestShapes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body string
		want []string
	}{
		"none":                    {`{"object":"list","data":[]}`, []string{}},
		"null for none":           {`{"object":"list","data":null}`, []string{}},
		"bare":                    {`[{"id":"a"},{"id":"b"}]`, []string{"a", "b"}},
		"texts":                   {`{"models":["x","y"]}`, []string{"x", "y"}},
		"by name":                 {`{"models":[{"name":"x"}]}`, []string{"x"}},
		"twice":                   {`{"data":[{"id":"a"},{"id":"a"},{"id":"A"}]}`, []string{"a", "A"}},
		"unusable ids":            {`{"data":[{"id":""},{"id":"  "},{"id":" m"},{"id":"m "},{"id":"a\nb"},{"id":7},{},null,3,[],{"id":"` + strings.Repeat("x", 513) + `"},{"id":"ok"}]}`, []string{"ok"}},
		"other kinds":             {`{"data":[{"id":"a","type":"image"},{"id":"b","type":"chat"},{"id":"c","output_modalities":["audio"]},{"id":"d","active":false}]}`, []string{"b"}},
		"blank lines and a mark":  {"\ufeff\n\n" + `{"data":[{"id":"a"}]}`, []string{"a"}},
		"half a character":        {"{\"data\":[{\"id\":\"a\",\"name\":\"\xff\"}]}", []string{"a"}},
		"messages of their own":   {`{"data":[{"id":"a","message":"new","detail":"x","error":null}]}`, []string{"a"}},
		"no chat, but embeddings": {`{"data":[{"id":"x-embed","capabilities":{"completion_chat":false}},{"id":"fim","capabilities":{"completion_chat":false}}]}`, []string{"x-embed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			models, err := discover.List(t.Context(), say(http.StatusOK, tt.body), plain, "")
			require.NoError(t, err)
			require.Equal(t, tt.want, ids(models))
		})
	}
}

// a 2xx that is no list is no success.
func TestNoListIsAnError(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing":                   "",
		"a page":                    "<!doctype html><html><body>Sign in</body></html>",
		"an error":                  `{"error":{"message":"invalid key","type":"invalid_request_error"}}`,
		"an error in a list":        `[{"error":{"code":400,"message":"API key not valid"}}]`,
		"a text as the error":       `{"error":"Unexpected endpoint or method. (GET /v1/models)"}`,
		"an inner status":           `{"base_resp":{"status_code":1004,"status_msg":"login fail"},"data":null}`,
		"a null and no word of why": `{"code":401,"msg":"bad key","data":null}`,
		"something else":            `{"status":"ok"}`,
		"an object":                 `{"data":{"id":"a"}}`,
		"a number":                  `12`,
		"half a list":               `{"data":[{"id":"a"},`,
		"deep":                      strings.Repeat("[", 1<<20),
		"an error beside a list":    `{"data":[],"error":{"message":"no"}}`,
		"too large":                 `{"data":[{"id":"` + strings.Repeat("a", 16<<20) + `"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := discover.List(t.Context(), say(http.StatusOK, body), plain, "secret-key-of-the-test")
			var refused *discover.RefusedError
			require.ErrorAs(t, err, &refused)
			require.True(t, refused.Verdict.Failed())
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

// the verdict on a key is that of classify.
func TestVerdictOfAKey(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		want   classify.Class
	}{
		"wrong":     {http.StatusUnauthorized, `{"error":{"message":"no","code":"invalid_api_key"}}`, classify.Auth},
		"forbidden": {http.StatusForbidden, `{"error":{"message":"no"}}`, classify.Forbidden},
		"limited":   {http.StatusTooManyRequests, `{"error":{"message":"slow","code":"rate_limit_exceeded"}}`, classify.Rate},
		"moved":     {http.StatusFound, ``, classify.Upstream},
		"broken":    {http.StatusBadGateway, `<html>`, classify.Upstream},
		"no list":   {http.StatusNotFound, `404`, classify.Model},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := discover.List(t.Context(), say(tt.status, tt.body), plain, "key")
			var refused *discover.RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, tt.want, refused.Verdict.Class)
		})
	}
	t.Run("network", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(classify.ErrTotalTimeout)
		_, err := discover.List(ctx, say(http.StatusOK, "{}"), plain, "key")
		var refused *discover.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, classify.Upstream, refused.Verdict.Class)
		require.Equal(t, "total timeout", refused.Verdict.Reason)
		require.ErrorIs(t, err, classify.ErrTotalTimeout)
	})
}

// OpenRouter's list is there without a key, so it must not vouch for one.
func TestOpenRouterVouchesForNoKey(t *testing.T) {
	t.Parallel()
	client := memory(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/key") {
			say(http.StatusUnauthorized, `{"error":{"message":"User not found.","code":401}}`)(w, r)
			return
		}
		say(http.StatusOK, `{"data":[{"id":"a"}]}`)(w, r)
	})
	source := discover.Source{Vendor: "openrouter", Dialect: "openai", URL: "https://openrouter.ai/api/v1"}
	_, err := discover.List(t.Context(), client, source, "key")
	var refused *discover.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, classify.Auth, refused.Verdict.Class)
	models, err := discover.List(t.Context(), client, source, "")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, ids(models))
}

// The first 5,000 models are kept, and no more.
func TestManyModels(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"data":[`)
	for i := range 6000 {
		fmt.Fprintf(&b, `{"id":"m%d"},`, i)
	}
	b.WriteString(`{"id":"last"}]}`)
	models, err := discover.List(t.Context(), say(http.StatusOK, b.String()), plain, "")
	require.NoError(t, err)
	require.Len(t, models, 5000)
	require.Equal(t, "m4999", models[4999].ID)
}

// seen collects requests.
type seen struct {
	mu   sync.Mutex
	urls []string
	head []http.Header
}

func (s *seen) add(r *http.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls, s.head = append(s.urls, r.URL.String()), append(s.head, r.Header.Clone())
	return len(s.urls)
}

// Where the key goes, and what the operator's headers are worth.
func TestCredentials(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source       discover.Source
		url          string
		header, want string
	}{
		"openai":      {discover.Source{Dialect: "openai", URL: "https://h/v1?api-version=3"}, "https://h/v1/models?api-version=3", "Authorization", "Bearer k"},
		"gemini":      {discover.Source{Dialect: "gemini", URL: "https://h/v1beta"}, "https://h/v1beta/models?pageSize=1000", "X-Goog-Api-Key", "k"},
		"compatible":  {discover.Source{Vendor: "gemini", Dialect: "openai", URL: "https://h/v1beta/openai"}, "https://h/v1beta/models?pageSize=1000", "X-Goog-Api-Key", "k"},
		"anthropic":   {discover.Source{Dialect: "anthropic", URL: "https://h"}, "https://h/v1/models?limit=1000", "X-Api-Key", "k"},
		"its version": {discover.Source{Dialect: "anthropic", URL: "https://h"}, "https://h/v1/models?limit=1000", "Anthropic-Version", "2023-06-01"},
		"own version": {discover.Source{Dialect: "anthropic", URL: "https://h", Header: http.Header{"Anthropic-Version": {"2026-10-21"}}}, "https://h/v1/models?limit=1000", "Anthropic-Version", "2026-10-21"},
		"ollama":      {discover.Source{Dialect: "ollama", URL: "http://h:11434/v1"}, "http://h:11434/api/tags", "Authorization", "Bearer k"},
		"opencode":    {discover.Source{Dialect: "opencode", URL: "http://h:4096?directory=%2Fsrv"}, "http://h:4096/config/providers?directory=%2Fsrv", "Authorization", "Basic b3BlbmNvZGU6aw=="},
		"own header":  {discover.Source{Dialect: "openai", URL: "https://h/v1", Header: http.Header{"X-Org": {"o"}}}, "https://h/v1/models", "X-Org", "o"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s seen
			own := tt.source.Header.Clone()
			_, err := discover.List(t.Context(), memory(func(w http.ResponseWriter, r *http.Request) {
				s.add(r)
				_, _ = io.WriteString(w, `{"object":"list","data":[],"models":[],"providers":[]}`)
			}), tt.source, "k")
			require.NoError(t, err)
			require.Equal(t, tt.url, s.urls[0])
			require.Equal(t, tt.want, s.head[0].Get(tt.header))
			require.Equal(t, own, tt.source.Header, "the headers of the source belong to others")
		})
	}
}

// A list is read page by page, and not for ever.
func TestPages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source discover.Source
		page   string // of a number, which names the next page
	}{
		"gemini":    {discover.Source{Dialect: "gemini", URL: "https://h/v1beta"}, `{"models":[{"name":"models/m%[1]d"}],"nextPageToken":"t/%[1]d"}`},
		"anthropic": {discover.Source{Dialect: "anthropic", URL: "https://h"}, `{"data":[{"id":"m%[1]d"}],"has_more":true,"last_id":"t/%[1]d"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s seen
			models, err := discover.List(t.Context(), memory(func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprintf(w, tt.page, s.add(r))
			}), tt.source, "k")
			require.NoError(t, err)
			require.Len(t, models, 20)
			require.Contains(t, s.urls[1], "t%2F1")
		})
	}
}

// OpenCode names models by provider; older servers have another operation, which also lists what is not set up.
func TestOpenCode(t *testing.T) {
	t.Parallel()
	source := discover.Source{Dialect: "opencode", URL: "http://h"}
	const models = `{"a-1":{"id":"a-1","name":"A 1","limit":{"context":1000,"output":100},"tool_call":true},` +
		`"b/2":{"id":"b/2","name":"B 2","limit":{"context":2000,"output":200},"attachment":true,"modalities":{"input":["text","image"],"output":["text"]}}}`
	want := []modelindex.Model{
		{ID: "acme/b/2", Name: "B 2", Window: 2000, Output: 200, Can: contract.FeatureImages, Cannot: contract.FeatureAudio},
		{ID: "acme/a-1", Name: "A 1", Window: 1000, Output: 100, Can: contract.FeatureTools},
	}
	t.Run("configured", func(t *testing.T) {
		t.Parallel()
		got, err := discover.List(t.Context(), say(http.StatusOK, `{"providers":[{"id":"acme","models":`+models+`}],"default":{"acme":"b/2"}}`), source, "")
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		got, err := discover.List(t.Context(), memory(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/provider" {
				say(http.StatusNotFound, `{"name":"NotFoundError","data":{"message":"x"}}`)(w, r)
				return
			}
			say(http.StatusOK, `{"all":[{"id":"off","models":{"x":{}}},{"id":"acme","models":`+models+`}],"default":{"acme":"b/2"},"connected":["acme"]}`)(w, r)
		}), source, "")
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// Ollama is asked about few models at a time, and not about thousands.
func TestOllamaIsAskedAboutSomeModels(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	running, most, asked := 0, 0, 0
	models, err := discover.List(t.Context(), memory(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/tags" {
			var list []map[string]string
			for i := range 300 {
				list = append(list, map[string]string{"name": fmt.Sprintf("m%d:latest", i)})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"models": list})
			return
		}
		mu.Lock()
		running++
		asked++
		most = max(most, running)
		mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		capability := "completion"
		if strings.Contains(string(body), `"m7:latest"`) {
			capability = "image"
		}
		_, _ = io.WriteString(w, `{"model_info":{"general.architecture":"x","x.context_length":4096,"y.context_length":9},"capabilities":["`+capability+`"]}`)
		mu.Lock()
		running--
		mu.Unlock()
	}), discover.Source{Dialect: "ollama", URL: "http://h/v1"}, "")
	require.NoError(t, err)
	require.Len(t, models, 299)
	require.Equal(t, modelindex.Model{ID: "m0:latest", Window: 4096, Cannot: contract.FeaturesMedia | contract.FeatureTools | contract.FeatureThinking}, models[0])
	require.NotContains(t, ids(models), "m7:latest")
	require.Equal(t, 200, asked)
	require.LessOrEqual(t, most, 4)
}

// LM Studio and llama.cpp say who they are, so nobody has to configure it.
func TestLMStudioIsRecognized(t *testing.T) {
	t.Parallel()
	models, err := discover.List(t.Context(), memory(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			say(http.StatusOK, `{"data":[{"id":"org/nu-20b","owned_by":"organization_owner"},{"id":"text-emb"},{"id":"other"}]}`)(w, r)
			return
		}
		serve(map[string]string{"/api/v1/models": "lmstudio/models-v1.json"})(w, r)
	}), plain, "")
	require.NoError(t, err)
	require.Equal(t, []modelindex.Model{
		{ID: "org/nu-20b", Name: "Nu 20B", Window: 16_384, Can: contract.FeatureTools, Cannot: contract.FeatureImages}, {ID: "text-emb", Name: "Emb", Window: 2048, Embedding: true}, {ID: "other"},
	}, models)
}

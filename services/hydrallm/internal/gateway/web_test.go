package gateway_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/output"
)

// internet is all that a gateway reaches of the web in these tests: pages by path, and a search engine.
type internet struct {
	pages, engine *httptest.Server

	mu      sync.Mutex
	queries []string
}

func startInternet(t *testing.T, pages map[string]http.HandlerFunc) *internet {
	t.Helper()
	w := &internet{}
	mux := http.NewServeMux()
	for path, page := range pages {
		mux.HandleFunc(path, page)
	}
	w.pages = httptest.NewServer(mux)
	t.Cleanup(w.pages.Close)
	w.engine = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.queries = append(w.queries, r.FormValue("q"))
		w.mu.Unlock()
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte(`{"query":"q","results":[]}`))
	}))
	t.Cleanup(w.engine.Close)
	return w
}

func (w *internet) searched() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queries)
}

// settings is the part of a configuration that knows no other web. There are no embeddings.
func (w *internet) settings() string {
	return fmt.Sprintf("\nweb: {browser: never, search: [searxng], searxng_url: %q, allow_hosts: [127.0.0.1], intent: {embedding_url: %q}}\n", w.engine.URL, w.pages.URL)
}

func page(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html><head><title>Lamps</title></head><body><article><h1>Lamps</h1>" + body + "</article></body></html>"))
	}
}

// Scenario 18, R-003, R-280: text from the web changes nothing about where a request goes. It is one message before the question, and one line of the log.
func TestScenario18TextFromTheWebIsNoSize(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	for n := range 200 {
		fmt.Fprintf(&long, "<p>Sentence %d of the long page tells of lamps, ships and the people who look after them.</p>", n)
	}
	w := startInternet(t, map[string]http.HandlerFunc{"/long": page(long.String())})
	fast, large := fakellm.Start(t), fakellm.Start(t)
	fast.Handle(fakellm.Talk("from fast"))
	large.Handle(fakellm.Talk("from large"))
	text := fmt.Sprintf(`
providers:
  - {id: groq, url: "%s/v1", key: key-of-provider-a, default_models: {free: small}}
  - {id: gemini, dialect: openai, url: "%s/v1", key: key-of-provider-b, default_models: {free: big}}
routing: {priority: [gemini, groq], fast: [groq], large: gemini, max_tokens_fast_model: 600, final_fallback: "", aliases: {}}
`, fast.URL(), large.URL())
	out := &output.Buffer{}
	x := serveTo(t, configured(t, freeport.Port(t), text+w.settings()), slog.New(slog.NewTextHandler(out, nil)))
	question := fmt.Sprintf(`what is %s/long about`, w.pages.URL)
	status, answer := x.do(t, http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":"auto","messages":[{"role":"user","content":%q}]}`, question))
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer, "from fast")
	list := gjson.GetBytes(last(fast).Body, "messages").Array()
	require.Equal(t, question, list[len(list)-1].Get("content").Str)
	require.Equal(t, "web_context", list[len(list)-2].Get("name").Str)
	require.Greater(t, len(list[len(list)-2].Get("content").Str), 3000)
	require.Equal(t, 1, strings.Count(string(last(fast).Body), `"web_context"`))
	require.Equal(t, 1, out.Count("Web context injected: "))
	require.Equal(t, 1, out.Count("chars into request.messages[-2] (session=None)"))
	// As many words of the user go to the other one.
	status, answer = x.do(t, http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":"auto","messages":[{"role":"user","content":%q}]}`, strings.Repeat("lamps and ships. ", 300)))
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer, "from large")
}

// pipeline is a gateway with one model to which text from the web applies.
func pipeline(t *testing.T, w *internet) (x running, upstream *fakellm.Server, out *output.Buffer) {
	t.Helper()
	upstream, out = fakellm.Start(t), &output.Buffer{}
	upstream.Handle(fakellm.Talk("fine"))
	text := fmt.Sprintf(`
providers: [{id: pa, url: "%s/v1", key: key-of-provider-a}]
upstreams: [{id: a, provider: pa, model: real-a}]
models: [{name: m, upstreams: [a], pipeline: true}]
routing: {final_fallback: "", aliases: {}}
`, upstream.URL())
	return serveTo(t, configured(t, freeport.Port(t), text+w.settings()), slog.New(slog.NewTextHandler(out, nil))), upstream, out
}

// Scenario 19, R-245, R-286: an address that leads inside is not read, which costs nobody an answer.
func TestScenario19RedirectIntoTheNetwork(t *testing.T) {
	t.Parallel()
	w := startInternet(t, map[string]http.HandlerFunc{"/away": func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	}})
	x, upstream, out := pipeline(t, w)
	const question = "what does %s/away say"
	status, answer := x.do(t, http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, fmt.Sprintf(question, w.pages.URL)))
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer, "fine")
	require.NotContains(t, answer, "169.254")
	require.NotContains(t, string(last(upstream).Body), "web_context\"")
	require.Zero(t, out.Count("Web context injected"))
	await.True(t, func() bool { // the session writer is behind the answer
		_, stats := x.do(t, http.MethodGet, "/v1/admin/stats", "", "X-Admin-Key", adminKey)
		return gjson.Get(stats, "scraping.fails").Int() == 1 && gjson.Get(stats, "scraping.recent.0.status").Str == "failed"
	}, "a failed fetch is recorded")
}

// Scenario 28, R-269: the sentences that ask for a search, and those that only speak of one, without embeddings.
func TestScenario28WhichSentencesSearch(t *testing.T) {
	t.Parallel()
	corpus, err := os.ReadFile("../../../enricher/internal/intent/testdata/corpus.tsv")
	require.NoError(t, err)
	w := startInternet(t, nil)
	x, _, _ := pipeline(t, w)
	n := 0
	for line := range strings.Lines(string(corpus)) {
		want, sentence, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		n++
		before := w.searched()
		status, answer := x.do(t, http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, sentence))
		require.Equal(t, http.StatusOK, status, answer)
		require.Equal(t, want == "web", w.searched() > before, sentence)
	}
	require.Equal(t, 180, n)
}

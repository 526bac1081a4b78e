package enrich

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/intent"
	"hydrallm/services/enricher/internal/page"
	"hydrallm/services/enricher/internal/search"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// site is a web with pages by address, and results by query. What it does not have fails.
type site struct {
	pages   map[string]string
	results map[string][]search.Result
	slow    map[string]time.Duration
	panics  string // address whose page is more than the reader can bear

	mu      sync.Mutex
	read    []string
	queries []string
}

func (s *site) Read(ctx context.Context, url string) (page.Document, error) {
	s.mu.Lock()
	s.read = append(s.read, url)
	s.mu.Unlock()
	if url == s.panics {
		panic("what a page")
	}
	select {
	case <-time.After(s.slow[url]):
	case <-ctx.Done():
		return page.Document{}, context.Cause(ctx)
	}
	text, ok := s.pages[url]
	if !ok {
		return page.Document{URL: url}, errors.New("404")
	}
	return page.Document{URL: url, Title: "T of " + url, Text: text}, nil
}

func (s *site) Search(_ context.Context, query string) ([]search.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries = append(s.queries, query)
	results, ok := s.results[query]
	if !ok {
		return nil, errors.New("all engines failed")
	}
	return results, nil
}

// words says yes to texts that hold one of them.
type words []string

func (w words) NeedsWeb(_ context.Context, text string) intent.Verdict {
	for _, word := range w {
		if strings.Contains(text, word) {
			return intent.Verdict{Web: true, Why: "test"}
		}
	}
	return intent.Verdict{}
}

const testDeadline = 4 * time.Second

func enricherOf(s *site, edit func(*Config)) *Enricher {
	cfg := Config{Web: config.Web{Enabled: true, MaxChars: 6000, Deadline: testDeadline}}
	if edit != nil {
		edit(&cfg)
	}
	web := &InProcess{Reader: s, Searcher: s}
	return New(cfg, web, words{"search", "검색"}, slog.New(slog.DiscardHandler))
}

func user(text string) string {
	return `{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":` + fmt.Sprintf("%q", text) + `}]}`
}

// what is fetched, and when is searched.
func TestTriggers(t *testing.T) {
	t.Parallel()
	no, yes := false, true
	const a, b = "http://a.example/p", "http://b.example/p"
	results := []search.Result{{URL: a}}
	tests := map[string]struct {
		body     string
		web      contract.Web
		traits   contract.Traits
		disabled bool
		read     []string
		queries  []string
		has      string // in the text that is injected; "" = nothing is
	}{
		"a named page":                        {body: user("what does " + a + " say"), read: []string{a}, has: "text of a"},
		"nothing":                             {body: user("hello")},
		"a request for a page":                {body: user("hello"), web: contract.Web{Fetch: b}, read: []string{b}, has: "text of b"},
		"words that need the web":             {body: user("search this"), queries: []string{"search this"}, read: []string{a}, has: "text of a"},
		"a search that is asked for":          {body: user("lamps"), web: contract.Web{Search: true}, queries: []string{"lamps"}, read: []string{a}, has: "text of a"},
		"a page is enough":                    {body: user("search " + b), web: contract.Web{Search: true}, read: []string{b}, has: "text of b"},
		"no page, and a search":               {body: user("search http://c.example/ this"), read: []string{"http://c.example/", a}, queries: []string{"search this"}, has: "text of a"},
		"no page, and no search":              {body: user("read http://c.example/"), read: []string{"http://c.example/"}},
		"not wanted":                          {body: user("search " + a), web: contract.Web{Auto: &no}},
		"not wanted, but a page":              {body: user("search " + a), web: contract.Web{Auto: &no, Fetch: b}, read: []string{b}, has: "text of b"},
		"not wanted, but a search":            {body: user("lamps"), web: contract.Web{Auto: &no, Search: true}, queries: []string{"lamps"}, read: []string{a}, has: "text of a"},
		"disabled":                            {body: user("search this"), disabled: true},
		"disabled, but wanted":                {body: user("search this"), disabled: true, web: contract.Web{Auto: &yes}, queries: []string{"search this"}, read: []string{a}, has: "text of a"},
		"tools":                               {body: user("search this"), traits: contract.Traits{Tools: true}},
		"tools, and a page":                   {body: user("read " + a), traits: contract.Traits{Tools: true}, read: []string{a}, has: "text of a"},
		"tools, and a search among them":      {body: user("search this"), traits: contract.Traits{Tools: true, Searches: true}, queries: []string{"search this"}, read: []string{a}, has: "text of a"},
		"the result of a tool":                {body: `{"messages":[{"role":"user","content":"search ` + a + `"},{"role":"tool","tool_call_id":"c","content":"` + b + `"}]}`, web: contract.Web{Search: true, Fetch: b}},
		"an answer to go on from":             {body: `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"` + a + `"}]}`},
		"a picture, and a page":               {body: `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`, web: contract.Web{Fetch: b}, read: []string{b}, has: "text of b"},
		"a picture, and a search for nothing": {body: `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`, web: contract.Web{Search: true}},
		"parts of text":                       {body: `{"messages":[{"role":"user","content":[{"type":"text","text":"what does"},{"type":"text","text":"` + a + ` say"}]}]}`, read: []string{a}, has: "text of a"},
		"a prompt":                            {body: `{"prompt":"what does ` + a + ` say"}`, read: []string{a}, has: "text of a"},
		"a search for an address alone":       {body: user("http://c.example/lamps"), web: contract.Web{Search: true}, read: []string{"http://c.example/lamps", a}, queries: []string{"http://c.example/lamps"}, has: "text of a"},
		"no results":                          {body: user("void"), web: contract.Web{Search: true}, queries: []string{"void"}},
		"no engine":                           {body: user("other"), web: contract.Web{Search: true}, queries: []string{"other"}},
		"not JSON":                            {body: `{"messages":`, web: contract.Web{Search: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &site{
				pages: map[string]string{a: "text of a", b: "text of b"},
				results: map[string][]search.Result{
					"lamps": results, "search this": results, "http://c.example/lamps": results, "void": nil,
				},
			}
			e := enricherOf(s, func(c *Config) { c.Web.Enabled = !tt.disabled })
			r := &contract.Request{Surface: contract.SurfaceChat, Web: tt.web, Traits: tt.traits}
			res := e.Enrich(t.Context(), r, []byte(tt.body))
			require.Equal(t, tt.read, s.read)
			require.Equal(t, tt.queries, s.queries)
			require.Len(t, res.Visits, len(tt.read)+len(tt.queries))
			if tt.has == "" {
				require.Nil(t, res.Body)
				require.Zero(t, res.Chars)
				return
			}
			list := gjson.GetBytes(res.Body, "messages").Array()
			injected := list[len(list)-2]
			require.Equal(t, "system", injected.Get("role").Str)
			require.Equal(t, "web_context", injected.Get("name").Str)
			require.Contains(t, injected.Get("content").Str, tt.has)
			require.Equal(t, utf8.RuneCountInString(injected.Get("content").Str), res.Chars)
			require.Equal(t, "user", list[len(list)-1].Get("role").Str)
		})
	}
}

// each surface has a place for it, and the rest of a body stays as it was.
func TestInjectionOnEverySurface(t *testing.T) {
	t.Parallel()
	const a = "http://a.example/p"
	for _, tt := range []struct {
		surface  contract.Surface
		in, path string
	}{
		{contract.SurfaceChat, `{"n":1.0,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"` + a + `"}]}`, "messages.2.content"},
		{contract.SurfaceMessages, `{"n":1.0,"system":"s","messages":[{"role":"user","content":"` + a + `"}]}`, "system.1.text"},
		{contract.SurfaceMessages, `{"n":1.0,"messages":[{"role":"user","content":[{"type":"text","text":"` + a + `"}]}]}`, "system"},
		{contract.SurfaceResponses, `{"n":1.0,"input":"` + a + `"}`, "input.0.content"},
		{contract.SurfaceResponses, `{"n":1.0,"input":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"input_text","text":"` + a + `"}]}]}`, "input.2.content"},
		{contract.SurfaceCompletions, `{"n":1.0,"prompt":"` + a + `"}`, "messages.0.content"},
	} {
		e := enricherOf(&site{pages: map[string]string{a: "text of a"}}, nil)
		res := e.Enrich(t.Context(), &contract.Request{Surface: tt.surface}, []byte(tt.in))
		require.Contains(t, gjson.GetBytes(res.Body, tt.path).Str, "text of a", "%s: %s", tt.surface, res.Body)
		require.Equal(t, "1.0", gjson.GetBytes(res.Body, "n").Raw)
	}
	// A completion that no chat model can make has no place.
	e := enricherOf(&site{pages: map[string]string{a: "text of a"}}, nil)
	require.Nil(t, e.Enrich(t.Context(), &contract.Request{Surface: contract.SurfaceCompletions}, []byte(`{"prompt":"`+a+`","suffix":"x"}`)).Body)
	// The result of a tool goes to an agent, whatever else stands beside it.
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"},{"type":"text","text":"` + a + `"}]}]}`,
	} {
		s := &site{pages: map[string]string{a: "text of a"}}
		require.Equal(t, Result{}, enricherOf(s, nil).Enrich(t.Context(), &contract.Request{Surface: contract.SurfaceMessages}, []byte(body)))
		require.Empty(t, s.read)
	}
}

// what has come by the deadline is used, and a panic costs the page alone.
func TestWhatGoesWrongCostsOnlyItself(t *testing.T) {
	t.Parallel()
	const good, slow, bad = "http://good.example/", "http://slow.example/", "http://bad.example/"
	synctest.Test(t, func(t *testing.T) {
		s := &site{pages: map[string]string{good: "good text", slow: "slow text"}, slow: map[string]time.Duration{slow: time.Hour}, panics: bad}
		began := time.Now()
		res := enricherOf(s, nil).Enrich(t.Context(), &contract.Request{}, []byte(user("compare "+slow+" "+bad+" "+good)))
		require.Equal(t, testDeadline, time.Since(began))
		require.Contains(t, string(res.Body), "good text")
		require.NotContains(t, string(res.Body), "slow text")
		text := gjson.GetBytes(res.Body, "messages.1.content").Str
		require.Contains(t, text, "good text")
		require.Equal(t, []contract.Visit{
			{Kind: contract.VisitFetch, URL: slow, Query: "compare", Status: contract.VisitFailed, LatencyMS: testDeadline.Milliseconds(), At: began},
			{Kind: contract.VisitFetch, URL: bad, Query: "compare", Status: contract.VisitError, At: began},
			{
				Kind: contract.VisitFetch, URL: good, Query: "compare", Status: contract.VisitSuccess, Title: "T of " + good, Chars: 9, Summary: "good text",
				Content: "good text", At: began,
			},
		}, res.Visits)
	})
}

// panicking is a classifier with a fault.
type panicking struct{}

func (panicking) NeedsWeb(context.Context, string) intent.Verdict { panic("no") }

// a fault of the gateway's own is no reason to fail a request.
func TestPanicOfTheStage(t *testing.T) {
	t.Parallel()
	e := enricherOf(&site{}, nil)
	e.classifier = panicking{}
	require.Equal(t, Result{}, e.Enrich(t.Context(), &contract.Request{}, []byte(user("hello there"))))
}

// a search and the pages that it led to are told of.
func TestVisitsOfASearch(t *testing.T) {
	t.Parallel()
	const a, b = "http://a.example/", "http://b.example/"
	s := &site{pages: map[string]string{a: "text of a"}, results: map[string][]search.Result{"search x": {{URL: a}, {URL: b}, {URL: a + "2"}, {URL: a + "3"}}}}
	seen := enricherOf(s, nil).Enrich(t.Context(), &contract.Request{}, []byte(user("search x"))).Visits
	require.Len(t, seen, 1+readResults)
	require.Equal(t, [...]any{contract.VisitSearch, "search x", contract.VisitSuccess, 4}, [...]any{seen[0].Kind, seen[0].Query, seen[0].Status, seen[0].Results})
	require.Equal(t, [...]any{contract.VisitFetch, a, contract.VisitSuccess, "text of a"}, [...]any{seen[1].Kind, seen[1].URL, seen[1].Status, seen[1].Content})
	require.Equal(t, [...]any{contract.VisitFetch, b, contract.VisitFailed}, [...]any{seen[2].Kind, seen[2].URL, seen[2].Status})
	require.Equal(t, a+"2", seen[3].URL)
}

// server is a search server that has one text, or fails.
type server struct {
	text string
	err  error
}

func (s server) Fetch(context.Context, string) (string, error)          { return s.text, s.err }
func (s server) SearchAndFetch(context.Context, string) (string, error) { return s.text, s.err }

// a server does the work; what fails there is done here, unless the address may not be fetched by anybody.
func TestByServer(t *testing.T) {
	t.Parallel()
	const a = "http://a.example/"
	own := &site{pages: map[string]string{a: "own text"}, results: map[string][]search.Result{"q": {{URL: a}}}}
	fallback := &InProcess{Reader: own, Searcher: own}
	broken := errors.New("no connection")
	for _, tt := range []struct {
		server   server
		fallback Web
		fetched  string
		found    string
	}{
		{server{text: "its text"}, fallback, "its text", "its text"},
		{server{}, fallback, "", ""},
		{server{err: broken}, nil, "", ""},
		{server{err: broken}, fallback, "own text", "own text"},
		{server{err: broken}, nil, "", ""},
		{server{err: fmt.Errorf("fetching: %w", guard.ErrBlocked)}, fallback, "", "own text"},
	} {
		w := &ByServer{Server: tt.server, Fallback: tt.fallback, Log: slog.New(slog.DiscardHandler)}
		p, err := w.Fetch(t.Context(), a, "q")
		require.Equal(t, tt.fetched, p.Text)
		require.Equal(t, tt.fetched == "", err != nil)
		found, _ := w.Search(t.Context(), "q")
		for _, url := range found.URLs {
			p, err := fallback.Fetch(t.Context(), url, "q")
			require.NoError(t, err)
			found.Pages = append(found.Pages, p)
		}
		text := ""
		if len(found.Pages) > 0 {
			text = found.Pages[0].Text
		}
		require.Equal(t, tt.found, text)
	}
}

// what only says that nothing was found is no text, for a prompt as little as for the cache.
func TestAServerThatFoundNothing(t *testing.T) {
	t.Parallel()
	for text, nothing := range map[string]bool{
		"Nothing was found.": true, "No results found for \"green lamps\".": true, " **no search results** ": true, "0 results": true, "검색 결과가 없습니다.": true, "결과 없음": true,
		"No relevant pages were found": true,
		"3 results":                    false, "No results were found in the study, which has 40 pages.\n\nIts authors say more.": false, "The search found nothing new": false,
		"Nothing was found. " + strings.Repeat("But there is more to tell. ", 20): false,
	} {
		found, err := (&ByServer{Server: server{text: text}}).Search(t.Context(), "q")
		require.NoError(t, err)
		require.Equal(t, nothing, found.Results == 0 && len(found.Pages) == 0, text)
	}
}

// the wording is fixed.
func TestLogLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Web context injected: 5 chars into request.messages[-2] (session=s1)", LogLine(5, "s1"))
	require.Equal(t, "Web context injected: 6000 chars into request.messages[-2] (session=None)", LogLine(6000, ""))
}

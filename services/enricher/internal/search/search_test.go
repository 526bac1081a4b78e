package search

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	duckPage    = `<div id="links"><div class="result web-result"><h2><a class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fone">One</a></h2></div></div>`
	duckNone    = `<div id="links"></div>`
	duckBlocked = `<form id="challenge-form"></form>`
	bingPage    = `<ol id="b_results"><li class="b_algo"><h2><a href="https://b.example/two">Two</a></h2></li></ol>`
	searxPage   = `{"results":[{"url":"https://c.example/three","title":"Three","content":"t"}]}`
)

// reply is what an engine of a test says.
type reply struct {
	status int
	body   string
	err    error
	hang   bool // until the request ends
}

// engines answers by host, and counts.
type engines struct {
	replies map[string]reply
	asked   []string
	last    map[string]*http.Request
}

func (e *engines) Do(r *http.Request) (*http.Response, error) {
	host := r.URL.Hostname()
	e.asked = append(e.asked, host)
	if e.last == nil {
		e.last = map[string]*http.Request{}
	}
	e.last[host] = r
	say := e.replies[host]
	if say.hang {
		<-r.Context().Done()
		return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: r.Context().Err()}
	}
	if say.err != nil {
		return nil, say.err
	}
	return &http.Response{StatusCode: max(say.status, http.StatusOK), Body: io.NopCloser(strings.NewReader(say.body)), Request: r}, nil
}

func (e *engines) took() []string {
	asked := e.asked
	e.asked = nil
	return asked
}

func web(names ...string) config.Web {
	return config.Web{Search: names, SearxNGURL: "http://searx", OpenSERP: config.OpenSERP{URL: "http://serp", Engine: "google"}}
}

const (
	duckHost = "html.duckduckgo.com"
	bingHost = "www.bing.com"
)

func chain(e *engines, names ...string) *Chain {
	return New(web(names...), e, outside, slog.New(slog.DiscardHandler))
}

func outside(url string) bool { return !strings.Contains(url, "inside") }

// tried in order; an error, a challenge or no result leads to the next, and who has results is the last.
func TestChain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		duck, bing, searx reply
		asked             []string
		url               string // of the first result
		fails             []string
	}{
		"the first has results":       {reply{body: duckPage}, reply{}, reply{}, []string{duckHost}, "https://a.example/one", nil},
		"the first is challenged":     {reply{status: 202, body: duckBlocked}, reply{body: bingPage}, reply{}, []string{duckHost, bingHost}, "https://b.example/two", nil},
		"a challenge with status 200": {reply{body: duckBlocked}, reply{body: bingPage}, reply{}, []string{duckHost, bingHost}, "https://b.example/two", nil},
		"the first has none":          {reply{body: duckNone}, reply{body: bingPage}, reply{}, []string{duckHost, bingHost}, "https://b.example/two", nil},
		"the first is not reached":    {reply{err: errors.New("no route")}, reply{body: bingPage}, reply{}, []string{duckHost, bingHost}, "https://b.example/two", nil},
		"the first has internal pages": {
			reply{body: strings.ReplaceAll(duckPage, "a.example", "inside.example")}, reply{body: bingPage}, reply{}, []string{duckHost, bingHost}, "https://b.example/two", nil,
		},
		"two fail":            {reply{status: 403}, reply{status: 500}, reply{body: searxPage}, []string{duckHost, bingHost, "searx"}, "https://c.example/three", nil},
		"none knows anything": {reply{body: duckNone}, reply{status: 500}, reply{body: `{"results":[]}`}, []string{duckHost, bingHost, "searx"}, "", nil},
		"all fail": {
			reply{status: 202, body: duckBlocked},
			reply{body: "<p>hello"},
			reply{status: 403},
			[]string{duckHost, bingHost, "searx"},
			"",
			[]string{"duckduckgo: it takes the gateway for a bot", "bing: its page is not understood", "searxng: it gives no JSON"},
		},
		"too much": {
			reply{body: strings.Repeat(" ", maxAnswer) + duckPage}, reply{body: bingPage}, reply{}, []string{duckHost, bingHost}, "https://b.example/two", nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &engines{replies: map[string]reply{duckHost: tt.duck, bingHost: tt.bing, "searx": tt.searx}}
			found, err := chain(e, "duckduckgo", "bing", "unknown", "searxng").Search(t.Context(), "green lamp")
			require.Equal(t, tt.asked, e.asked)
			if tt.fails != nil {
				for _, reason := range tt.fails {
					require.ErrorContains(t, err, reason)
				}
				require.NotContains(t, err.Error(), "green")
				return
			}
			require.NoError(t, err)
			if tt.url == "" {
				require.Empty(t, found)
				return
			}
			require.Equal(t, tt.url, found[0].URL)
		})
	}
}

func TestChainWithoutEngines(t *testing.T) {
	t.Parallel()
	_, err := New(config.Web{Search: []string{"unknown", "searxng", "openserp"}}, nil, outside, slog.New(slog.DiscardHandler)).Search(t.Context(), "lamp")
	require.ErrorContains(t, err, "there is no search engine")
	_, err = chain(&engines{}, "bing").Search(t.Context(), " \n\t")
	require.ErrorIs(t, err, ErrEmpty)
}

// an engine that hangs has its share of the time alone, and the next one is asked.
func TestAnEngineThatHangs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ limit, want time.Duration }{{0, engineTimeout}, {6 * time.Second, 2 * time.Second}, {time.Hour, engineTimeout}} {
		t.Run(tt.limit.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.limit)
					defer cancel()
				}
				e := &engines{replies: map[string]reply{duckHost: {hang: true}, bingHost: {body: bingPage}}}
				start := time.Now()
				found, err := chain(e, "duckduckgo", "bing").Search(ctx, "lamp")
				require.NoError(t, err)
				require.Len(t, found, 1)
				require.Equal(t, tt.want, time.Since(start))
			})
		})
	}
}

// Nobody waits any more: that is no failure of an engine, and no other one is asked.
func TestWhoLeavesIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &engines{replies: map[string]reply{duckHost: {hang: true}, bingHost: {body: bingPage}}}
		c := chain(e, "duckduckgo", "bing")
		gone := errors.New("the client is gone")
		for range 2 * enough {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(gone) })
			_, err := c.Search(ctx, "lamp")
			require.ErrorIs(t, err, gone)
			require.Equal(t, []string{duckHost}, e.took())
		}
	})
}

// who failed or challenged several times in a row rests, says so, and is asked again afterwards.
func TestRest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		say   reply
		until int // calls after which it rests
		rest  time.Duration
		words string
	}{
		"challenges": {reply{status: 202, body: duckBlocked}, 4, challengeRest, "it rests for 10m0s: it takes the gateway for a bot"},
		"failures":   {reply{status: 500}, 8, failureRest, "it rests for 30s: it answered with status 500"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &engines{replies: map[string]reply{duckHost: tt.say}}
				c := chain(e, "duckduckgo")
				search := func() error {
					_, err := c.Search(t.Context(), "lamp")
					return err
				}
				for range tt.until {
					require.Error(t, search())
					require.Len(t, e.took(), 1)
				}
				require.ErrorContains(t, search(), tt.words)
				require.Empty(t, e.took())

				<-time.After(tt.rest)
				require.Error(t, search())
				require.Len(t, e.took(), 1)
				require.ErrorContains(t, search(), "it rests", "one more failure is enough")

				<-time.After(tt.rest)
				e.replies[duckHost] = reply{body: duckNone}
				require.NoError(t, search())
				e.replies[duckHost] = tt.say
				for range tt.until {
					require.NotContains(t, search().Error(), "rests", "an answer forgives what was before")
				}
			})
		})
	}
}

// what engines are asked, and in which language.
func TestRequests(t *testing.T) {
	t.Parallel()
	e := &engines{}
	ask := func(text string) map[string]url.Values {
		_, err := chain(e, "duckduckgo", "bing", "openserp", "searxng").Search(t.Context(), text)
		require.Error(t, err)
		got := map[string]url.Values{}
		for host, r := range e.last {
			require.NoError(t, r.ParseForm())
			got[host] = r.Form
		}
		return got
	}
	got := ask("  등대   조명\n가격 ")
	require.Equal(t, url.Values{"q": {"등대 조명 가격"}, "b": {""}, "kl": {"kr-kr"}}, got[duckHost])
	require.Equal(t, url.Values{"q": {"등대 조명 가격"}, "mkt": {"ko-KR"}, "setlang": {"ko"}}, got[bingHost])
	require.Equal(t, url.Values{"text": {"등대 조명 가격"}, "limit": {"10"}, "lang": {"KO"}, "region": {"KR"}, "format": {"json"}}, got["serp"])
	require.Equal(t, url.Values{"q": {"등대 조명 가격"}, "format": {"json"}, "categories": {"general"}, "language": {"ko"}}, got["searx"])
	require.Equal(t, "/google/search", e.last["serp"].URL.Path)
	require.Equal(t, "ko-KR,ko;q=0.8", e.last[bingHost].Header.Get("Accept-Language"))

	got = ask("lamp prices 2026")
	require.Equal(t, "us-en", got[duckHost].Get("kl"))
	require.Equal(t, "en-US", got[bingHost].Get("mkt"))

	got = ask("ランプの値段")
	require.Equal(t, "wt-wt", got[duckHost].Get("kl"))
	require.Empty(t, got[bingHost].Get("mkt"))
	require.Empty(t, e.last["searx"].Header.Get("Accept-Language"))
}

//
func TestQueriesAreShort(t *testing.T) {
	t.Parallel()
	long := newQuery(strings.Repeat("등대 ", 200)).text
	require.LessOrEqual(t, len([]rune(long)), maxQuery)
	require.True(t, strings.HasSuffix(long, "등대"), "words stay whole")
	require.Len(t, []rune(newQuery(strings.Repeat("등", 300)).text), maxQuery)
	require.Equal(t, strings.Repeat("a", maxQuery), newQuery(strings.Repeat("a", maxQuery)+" b").text)
	require.Equal(t, "a b", newQuery("a\x00\x1b b\xff").text)
}

// engines may be at internal addresses. Redirects lead nowhere but to the same host.
func TestClient(t *testing.T) {
	t.Parallel()
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer trap.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /old/search", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/search?q=lamp", http.StatusFound)
	})
	mux.HandleFunc("GET /search", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, searxPage) })
	mux.HandleFunc("GET /away/search", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, trap.URL, http.StatusFound) })
	mux.HandleFunc("GET /loop/search", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop/search", http.StatusFound) })
	mux.HandleFunc("POST /html/", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, trap.URL, http.StatusSeeOther) })
	server := httptest.NewServer(mux)
	defer server.Close()
	client := Client()
	defer client.CloseIdleConnections()
	search := func(web config.Web) ([]Result, error) {
		return New(web, client, outside, slog.New(slog.DiscardHandler)).Search(t.Context(), "lamp")
	}
	for path, words := range map[string]string{"": "", "/": "", "/old": "", "/away": "status 302", "/loop": "status 302"} {
		found, err := search(config.Web{Search: []string{"searxng"}, SearxNGURL: server.URL + path})
		if words != "" {
			require.ErrorContains(t, err, words, path)
			continue
		}
		require.NoError(t, err, path)
		require.Len(t, found, 1, path)
	}
	found, err := search(config.Web{Search: []string{"duckduckgo"}, Engines: map[string]string{"duckduckgo": server.URL}})
	require.NoError(t, err, "its way to say that there is nothing")
	require.Empty(t, found)
}

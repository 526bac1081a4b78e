package search

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fixtures"
)

// all are the engines of the tests by the begin of the names of their samples.
var all = map[string]engine{
	"duckduckgo": duckduckgo{base: "https://html.duckduckgo.com"}, "bing": bing{base: "https://www.bing.com"},
	"searxng": searxng{base: "http://searx"}, "openserp": openserp{base: "http://serp", engine: "bing"},
}

// readAll gives what a search finds in an answer.
func readAll(tb testing.TB, e engine, status int, body []byte) ([]Result, error) {
	tb.Helper()
	r, err := e.request(tb.Context(), query{text: "lamp"})
	require.NoError(tb, err)
	found, err := e.read(answer{status: status, url: r.URL, body: body})
	return tidy(found, func(u *url.URL) bool { return u.Host == r.URL.Host || e.own(strings.ToLower(u.Hostname())) }), err
}

// each sample of an engine is read as its line in the index says.
func TestSamples(t *testing.T) {
	t.Parallel()
	lamp := Result{Title: "Green lamp", URL: "https://example.org/lamp", Snippet: "A green lamp explained."}
	want := map[string]struct {
		found []Result
		err   string
	}{
		"search/duckduckgo.html": {[]Result{
			{Title: "Green lamp & notes", URL: "https://example.org/lamp?a=1&b=2", Snippet: "A green lamp explained."}, {Title: "Lamp guide", URL: "https://example.com/guide"},
		}, ""},
		"search/duckduckgo-challenge.html": {nil, errChallenge.Error()},
		"search/bing.html":                 {[]Result{lamp, {Title: "Lamp guide", URL: "https://example.com/guide"}}, ""},
		"search/searxng.json":              {[]Result{lamp}, ""},
		"search/searxng-403.html":          {nil, "json has to be in search.formats"},
		"search/openserp.json":             {[]Result{lamp}, ""},
		"search/openserp-v1.json":          {[]Result{lamp}, ""},
		"search/openserp-error.json":       {nil, errChallenge.Error() + " (captcha_detected)"},
	}
	samples := fixtures.Of("search")
	require.Len(t, samples, len(want))
	for _, f := range samples {
		t.Run(f.File, func(t *testing.T) {
			t.Parallel()
			expect, known := want[f.File]
			require.True(t, known)
			name := strings.FieldsFunc(strings.TrimPrefix(f.File, "search/"), func(r rune) bool { return r == '.' || r == '-' })[0]
			found, err := readAll(t, all[name], f.Status, f.Body)
			if expect.err != "" {
				require.ErrorContains(t, err, expect.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, expect.found, found)
		})
	}
}

func item(href string) string {
	return `<div class="result web-result"><h2><a class="result__a" href="` + href + `">T</a></h2></div>`
}

func algo(href string) string { return `<li class="b_algo"><h2><a href="` + href + `">T</a></h2></li>` }

// what links lead to, and which lead nowhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		engine, body string
		want         []string
	}{
		"duckduckgo": {"duckduckgo", `<div id="links">` + strings.Join([]string{
			item("//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2F%ED%95%9C%EA%B8%80&rut=1"), item("/l/?uddg=http%3A%2F%2Fb.example"),
			item("https://duckduckgo.com/l/?kh=-1&uddg=https%3A%2F%2Fc.example%2F%3Fq%3Da%2Bb%26x%3D%252F"),
			item("https://d.example/?uddg=https%3A%2F%2Fnot.example"), item("//e.example/x"),
			item("https://duckduckgo.com/y.js?ad_provider=x"), item("https://duckduckgo.com/about"), item("/settings"), item(""), item("#top"),
			item("//duckduckgo.com/l/?uddg=javascript%3Aalert(1)"), item("//duckduckgo.com/l/?uddg=%2Frelative"), item("//duckduckgo.com/l/?uddg=https%3A%2F%2Fduckduckgo.com%2F"),
			item("javascript:void(0)"), item("ftp://f.example/"), item("https://user:secret@g.example/"), item("https://"), item("http://[::1"), item("%zz"),
			item("mailto:a@b.example"), item("data:text/html,x"), item("//duckduckgo.com/l/?uddg=%zz"), item("https://h.example/" + strings.Repeat("x", maxURL)),
		}, "") + `</div>`, []string{"https://a.example/%ED%95%9C%EA%B8%80", "http://b.example", "https://c.example/?q=a+b&x=%2F", "https://d.example/?uddg=https%3A%2F%2Fnot.example", "https://e.example/x"}},
		"bing": {"bing", `<ol id="b_results">` + strings.Join([]string{
			algo("https://www.bing.com/ck/a?!&&p=1&u=a1aHR0cHM6Ly9hLmV4YW1wbGUvP3E9w7w_&ntb=1"), // ends in _ of the URL alphabet
			algo("/ck/a?u=a1aHR0cHM6Ly9iLmV4YW1wbGUvcQ=="), algo("https://c.example/ck/a?u=a1x"),
			algo("https://www.bing.com/aclick?x=1"), algo("https://www.bing.com/ck/a?u=a2aHR0cHM6Ly9iLmV4YW1wbGUvcQ"), algo("https://www.bing.com/ck/a?u=a1!!"),
			algo("https://www.bing.com/ck/a?u=a1"), algo("https://cn.bing.com/search?q=x"), algo("https://www.bing.com/ck/a?u=a1aHR0cHM6Ly93d3cuYmluZy5jb20v"),
			`<li class="b_ad b_algo"><h2><a href="https://ad.example/">Ad</a></h2></li>`,
		}, "") + `</ol>`, []string{"https://a.example/?q=ü?", "https://b.example/q", "https://c.example/ck/a?u=a1x"}},
		"addresses that are the same": {"searxng", `{"results":[{"url":"https://A.example/x#top"},{"url":"https://a.example/x/"},{"url":"http://www.a.example/x"},{"url":"https://a.example/x?y"},
			{"url":"file:///etc/passwd"},{"url":null},{"url":"http://searx/about"}]}`, []string{"https://a.example/x", "https://a.example/x?y"}},
		"advertisements and boxes": {
			"openserp", `{"results":[{"url":"https://a.example","type":"ad"},{"url":"https://b.example","type":"answer_box"},{"url":"https://c.example"},{"url":"https://d.example","ad":true}]}`,
			[]string{"https://c.example"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := readAll(t, all[tt.engine], http.StatusOK, []byte(tt.body))
			require.NoError(t, err)
			var urls []string
			for _, r := range found {
				urls = append(urls, r.URL)
			}
			require.Equal(t, tt.want, urls)
		})
	}
}

// what is no answer of an engine is an error that says why; to have found nothing is none.
func TestAnswersWithoutResults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		engine string
		status int
		body   string
		err    string // "" = none
	}{
		"duckduckgo knows nothing":     {"duckduckgo", 200, `<div id="links"><div class="result result--no-result"><span>No results.</span></div></div>`, ""},
		"duckduckgo shows a wall":      {"duckduckgo", 200, `<p>Unfortunately, bots use DuckDuckGo too.</p>`, errChallenge.Error()},
		"duckduckgo is another page":   {"duckduckgo", 200, `<html><body>Welcome</body></html>`, errStrange.Error()},
		"duckduckgo forbids":           {"duckduckgo", 403, ``, errChallenge.Error()},
		"bing knows nothing":           {"bing", 200, `<ol id="b_results"><li class="b_no"><h1>There are no results for x</h1></li></ol>`, ""},
		"bing wants a captcha":         {"bing", 200, `<div class="captcha"></div><ol id="b_results"></ol>`, errChallenge.Error()},
		"bing asks for a person":       {"bing", 200, `<p>Please verify that you are not a robot</p>`, errChallenge.Error()},
		"bing has too many":            {"bing", 429, ``, errChallenge.Error()},
		"bing is nested without end":   {"bing", 200, strings.Repeat("<div>", 100_000), errStrange.Error()},
		"searxng knows nothing":        {"searxng", 200, `{"results":[]}`, ""},
		"searxng asked in vain":        {"searxng", 200, `{"results":[],"unresponsive_engines":[["google","CAPTCHA"]]}`, "[google CAPTCHA]"},
		"searxng has a limiter":        {"searxng", 429, `Too Many Requests`, "limiter"},
		"searxng is a page":            {"searxng", 200, `<html>`, errStrange.Error()},
		"searxng is other JSON":        {"searxng", 200, `{"a":1}`, errStrange.Error()},
		"searxng is a list":            {"searxng", 200, `[]`, errStrange.Error()},
		"openserp knows nothing":       {"openserp", 200, `{"results":[]}`, ""},
		"openserp 1 knows nothing":     {"openserp", 200, ` []`, ""},
		"openserp asked in vain":       {"openserp", 200, `{"meta":{"engines_failed":["google"]},"results":[]}`, "its engines failed: google"},
		"openserp timed out":           {"openserp", 503, `{"error":"search_timeout","code":503}`, "search_timeout"},
		"openserp is blocked with 200": {"openserp", 200, `{"error":"blocked"}`, errChallenge.Error()},
		"openserp is away":             {"openserp", 502, `<html>Bad Gateway`, "status 502"},
		"openserp is cut off":          {"openserp", 200, `{"results":[{`, errStrange.Error()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := readAll(t, all[tt.engine], tt.status, []byte(tt.body))
			require.Empty(t, found)
			if tt.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.err)
		})
	}
}

func TestTextsAreOneShortLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a b", shorten(" a\n\t b\x00 ", 5))
	require.Equal(t, "등대…", shorten("등대 조명", 4))
	require.Equal(t, "등대 조명", shorten("등대 조명", 5))
	found, err := readAll(t, all["searxng"], 200, []byte(`{"results":[{"url":"https://a.example","title":"A &amp; B","content":"x &lt;b&gt;"}]}`))
	require.NoError(t, err)
	require.Equal(t, []Result{{Title: "A & B", URL: "https://a.example", Snippet: "x <b>"}}, found)
}

func fuzzEngine(f *testing.F, name string) {
	f.Helper()
	for _, s := range fixtures.Of("search") {
		if strings.Contains(s.File, name) {
			f.Add(s.Status, s.Body)
		}
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		found, err := readAll(t, all[name], status, body)
		if err != nil {
			require.Empty(t, found)
		}
		require.LessOrEqual(t, len(found), maxResults)
		for _, r := range found {
			u, err := url.Parse(r.URL)
			require.NoError(t, err)
			require.Contains(t, []string{"http", "https"}, u.Scheme)
			require.NotEmpty(t, u.Hostname())
			require.Nil(t, u.User)
			require.LessOrEqual(t, len([]rune(r.Title)), maxTitle)
			require.LessOrEqual(t, len([]rune(r.Snippet)), maxSnippet)
			require.NotContains(t, r.Title+r.Snippet, "\n")
		}
	})
}

func FuzzDuckDuckGo(f *testing.F) { fuzzEngine(f, "duckduckgo") }
func FuzzBing(f *testing.F)       { fuzzEngine(f, "bing") }
func FuzzSearXNG(f *testing.F)    { fuzzEngine(f, "searxng") }
func FuzzOpenSERP(f *testing.F)   { fuzzEngine(f, "openserp") }

package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/enrich"
	"hydrallm/services/enricher/internal/extract"
	"hydrallm/services/enricher/internal/fetch"
	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/mcpclient"
	"hydrallm/services/enricher/internal/page"
	"hydrallm/services/enricher/internal/reader"
	"hydrallm/services/enricher/internal/search"
	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/startstoptest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var _ lifecycle.Service = (*Server)(nil)

var quiet = slog.New(slog.DiscardHandler)

// world is a web on loopback, and a search engine for it.
type world struct {
	site  *httptest.Server
	tools Tools
	held  chan struct{} // closed: /slow answers
	asked chan struct{} // gets a value when /slow is asked
	left  chan struct{} // gets a value when nobody waits for /slow any more
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{held: make(chan struct{}), asked: make(chan struct{}, 8), left: make(chan struct{}, 8)}
	mux := http.NewServeMux()
	write := func(title string, paragraphs ...string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(rw, `<html><head><title>%s</title><meta property="article:published_time" content="2026-11-30"></head><body><article><h1>%s</h1>`, title, title)
			for _, text := range paragraphs {
				_, _ = fmt.Fprintf(rw, "<p>%s</p>", text)
			}
			_, _ = io.WriteString(rw, "</article></body></html>")
		}
	}
	mux.HandleFunc("GET /lamp", write("Green lamp", strings.Repeat("Nothing of interest here. ", 400), "The green lamp costs 42 euros.", strings.Repeat("More of the same. ", 400)))
	mux.HandleFunc("GET /short", write("짧은 글", "등대 조명은 밝다."))
	mux.HandleFunc("GET /empty", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(rw, "<html><body></body></html>")
	})
	mux.HandleFunc("GET /slow", func(rw http.ResponseWriter, r *http.Request) {
		w.asked <- struct{}{}
		select {
		case <-w.held:
			write("Slow", "It came in the end.")(rw, r)
		case <-r.Context().Done():
			w.left <- struct{}{}
		}
	})
	engine := http.NewServeMux()
	engine.HandleFunc("GET /search", func(rw http.ResponseWriter, r *http.Request) {
		found := ""
		if !strings.Contains(r.FormValue("q"), "nothing") {
			at := w.site.URL
			found = fmt.Sprintf(`{"url":%q,"title":"A","content":"about the lamp"},{"url":%q,"title":"Gone","content":"what the engine said"},{"url":%q},{"url":%q}`, at+"/lamp", at+"/missing", at+"/short", at+"/fourth")
		}
		_, _ = io.WriteString(rw, `{"results":[`+found+`]}`)
	})
	w.site = httptest.NewServer(mux)
	t.Cleanup(w.site.Close)
	engines := httptest.NewServer(engine)
	t.Cleanup(engines.Close)
	client := search.Client()
	t.Cleanup(client.CloseIdleConnections)
	g := guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}})
	w.tools = Tools{
		Web: &enrich.InProcess{
			Reader:   reader.New(fetch.New(g, fetch.Config{}), nil, extract.Extract, reader.Never, quiet),
			Searcher: search.New(config.Web{Search: []string{"searxng"}, SearxNGURL: engines.URL}, client, func(string) bool { return true }, quiet),
		},
		MaxChars: 6000, Deadline: await.Limit,
	}
	return w
}

// serve starts a server of the tools and gives its address.
func serve(t *testing.T, token string, tools Tools) (*Server, string) {
	t.Helper()
	s, err := New(Config{Listen: "127.0.0.1:0", Token: token, Version: "1.0"}, tools, quiet)
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	return s, "http://" + s.Addr().String() + Path
}

// bearer is a transport with a token.
type bearer struct {
	token string
	base  *http.Transport
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.base.RoundTrip(r)
}

// official connects the SDK's client.
func official(t *testing.T, address, token, revision string) (*mcp.ClientSession, error) {
	t.Helper()
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: address, HTTPClient: &http.Client{Transport: bearer{token, base}}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
}

func call(t *testing.T, s *mcp.ClientSession, tool string, arguments map[string]any) (text string, failed bool) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(t, err)
	require.Len(t, result.Content, 1)
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

// the official client, in the revisions with and without sessions.
func TestOfficialClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, address := serve(t, "right", w.tools)
	_, err := official(t, address, "wrong", "")
	require.Error(t, err)
	for _, revision := range []string{"", "2025-11-25", "2025-03-26"} {
		t.Run("revision "+revision, func(t *testing.T) {
			t.Parallel()
			s, err := official(t, address, "right", revision)
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			require.Empty(t, s.ID(), "there are no sessions")

			list, err := s.ListTools(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, list.Tools, 2)
			for _, tool := range list.Tools {
				require.True(t, tool.Annotations.ReadOnlyHint)
				require.True(t, *tool.Annotations.OpenWorldHint)
				require.NotEmpty(t, tool.Description)
				schema := tool.InputSchema.(map[string]any)
				require.Len(t, schema["required"], 1)
				require.Equal(t, map[string]any{
					"type": "integer", "minimum": 200.0, "maximum": 50000.0, "default": 6000.0, "description": "The most characters of text in the answer",
				}, schema["properties"].(map[string]any)["max_chars"])
			}

			text, failed := call(t, s, "search_and_fetch", map[string]any{"query": "how much does the green lamp cost"})
			require.False(t, failed, text)
			for _, want := range []string{
				"# Green lamp\nURL: " + w.site.URL + "/lamp\nDate: 2026-11-30\n", "The green lamp costs 42 euros.", "# 짧은 글\n", "등대 조명은 밝다.",
			} {
				require.Contains(t, text, want)
			}
			require.NotContains(t, text, "/fourth", "three pages are read")
			require.LessOrEqual(t, utf8.RuneCountInString(text), 6000)

			text, failed = call(t, s, "search_and_fetch", map[string]any{"query": "green lamp euros", "max_chars": 500})
			require.False(t, failed, text)
			require.Contains(t, text, "42 euros")
			require.LessOrEqual(t, utf8.RuneCountInString(text), 500)

			text, failed = call(t, s, "search_and_fetch", map[string]any{"query": "nothing"})
			require.False(t, failed)
			require.Equal(t, "Nothing was found.", text)

			text, failed = call(t, s, "fetch", map[string]any{"url": w.site.URL + "/short"})
			require.False(t, failed)
			require.Equal(t, "# 짧은 글\nURL: "+w.site.URL+"/short\nDate: 2026-11-30\n\n등대 조명은 밝다.", text)
		})
	}
}

// What can't be done is told to the model, and nothing of the network with it.
func TestFailuresOfTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, address := serve(t, "right", w.tools)
	s, err := official(t, address, "right", "")
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for _, tt := range []struct {
		tool      string
		arguments map[string]any
		words     string
	}{
		{"fetch", map[string]any{"url": "http://169.254.169.254/latest"}, guard.ErrBlocked.Error()},
		{"fetch", map[string]any{"url": "file:///etc/passwd"}, guard.ErrBlocked.Error()},
		{"fetch", map[string]any{"url": w.site.URL + "/missing"}, "the server answered with status 404"},
		{"fetch", map[string]any{"url": w.site.URL + "/empty"}, extract.ErrNoText.Error()},
		{"fetch", map[string]any{"url": ""}, "minLength"},
		{"fetch", map[string]any{}, "required"},
		{"fetch", map[string]any{"url": "https://a.example", "max_chars": 1}, "minimum"},
		{"search_and_fetch", map[string]any{"query": "lamp", "max_chars": 1_000_000}, "maximum"},
		{"search_and_fetch", map[string]any{"query": "lamp", "engine": "x"}, "engine"},
		{"search_and_fetch", map[string]any{"query": strings.Repeat("x", maxQuery+1)}, "maxLength"},
		{"search_and_fetch", map[string]any{"query": " \n"}, search.ErrEmpty.Error()},
	} {
		text, failed := call(t, s, tt.tool, tt.arguments)
		require.True(t, failed, text)
		require.Contains(t, text, tt.words)
	}
	_, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "run"})
	require.Error(t, err)

	w.tools.Web = brokenWeb{}
	_, address = serve(t, "right", w.tools)
	other, err := official(t, address, "right", "")
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	text, failed := call(t, other, "search_and_fetch", map[string]any{"query": "lamp"})
	require.True(t, failed)
	require.Equal(t, "no search engine answered", text)
	text, failed = call(t, other, "fetch", map[string]any{"url": "https://a.example"})
	require.True(t, failed)
	require.Equal(t, "the page could not be read", text)
}

// everything is a guard that lets everything pass, so that the server's own is tested.
type everything struct{}

func (everything) Check(_ context.Context, rawURL string) (*url.URL, error) { return url.Parse(rawURL) }

// another gateway with `backend: mcp` gets what it needs.
func TestTheGatewaysOwnClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, address := serve(t, "right", w.tools)
	c := mcpclient.New(config.MCP{URL: address, Token: "right", Timeout: await.Limit}, everything{}, "1.0")
	defer c.Close()
	text, err := c.SearchAndFetch(t.Context(), "green lamp euros")
	require.NoError(t, err)
	require.Contains(t, text, "42 euros")
	text, err = c.Fetch(t.Context(), w.site.URL+"/short")
	require.NoError(t, err)
	require.Contains(t, text, "등대 조명은 밝다.")
	_, err = c.Fetch(t.Context(), "http://10.0.0.1/")
	require.ErrorContains(t, err, guard.ErrBlocked.Error())

	stranger := mcpclient.New(config.MCP{URL: address, Token: "wrong", Timeout: await.Limit}, everything{}, "1.0")
	defer stranger.Close()
	_, err = stranger.SearchAndFetch(t.Context(), "lamp")
	require.Error(t, err)
}

// post sends a message as it is.
func post(t *testing.T, address, body string, header map[string]string) (status int, answer string, h http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for key, value := range header {
		if key == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(key, value)
	}
	base := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: base}).Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text), resp.Header
}

// who may come in.
func TestDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, locked := serve(t, "right", w.tools)
	_, open := serve(t, "", w.tools)
	hello := string(fixtures.Get("mcp/initialize-request.json").Body)
	tests := map[string]struct {
		address string
		header  map[string]string
		body    string
		status  int
	}{
		"no token":              {locked, nil, hello, 401},
		"a wrong token":         {locked, map[string]string{"Authorization": "Bearer wrong"}, hello, 401},
		"a part of the token":   {locked, map[string]string{"Authorization": "Bearer righ"}, hello, 401},
		"another scheme":        {locked, map[string]string{"Authorization": "Basic right"}, hello, 401},
		"an empty token":        {locked, map[string]string{"Authorization": "Bearer "}, hello, 401},
		"the token":             {locked, map[string]string{"Authorization": "Bearer right"}, hello, 200},
		"the scheme in lower":   {locked, map[string]string{"Authorization": "bearer right"}, hello, 200},
		"a proxy's host":        {locked, map[string]string{"Authorization": "Bearer right", "Host": "mcp.example"}, hello, 200},
		"a page elsewhere":      {locked, map[string]string{"Authorization": "Bearer right", "Origin": "https://evil.example"}, hello, 403},
		"a page on its host":    {locked, map[string]string{"Authorization": "Bearer right", "Host": "evil.example", "Origin": "http://evil.example"}, hello, 403},
		"a page of no origin":   {locked, map[string]string{"Authorization": "Bearer right", "Origin": "null"}, hello, 403},
		"a page that looks so":  {locked, map[string]string{"Authorization": "Bearer right", "Origin": "http://localhost.evil.example"}, hello, 403},
		"a page of the machine": {locked, map[string]string{"Authorization": "Bearer right", "Origin": "http://localhost:6274"}, hello, 200},
		"open":                  {open, nil, hello, 200},
		"open, a rebound name":  {open, map[string]string{"Host": "evil.example"}, hello, 403},
		"open, its page":        {open, map[string]string{"Host": "evil.example", "Origin": "http://evil.example"}, hello, 403},
		"too large":             {open, nil, `{"x":"` + strings.Repeat("x", maxBody) + `"}`, 413},
		"no JSON":               {open, nil, "{", 400},
		"another type":          {open, map[string]string{"Content-Type": "text/plain"}, hello, 415},
		"another path":          {strings.TrimSuffix(open, Path) + "/", nil, hello, 404},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer, header := post(t, tt.address, tt.body, tt.header)
			require.Equal(t, tt.status, status, answer)
			require.Empty(t, header.Get("Mcp-Session-Id"))
			require.NotContains(t, answer, "right")
			if status == http.StatusUnauthorized {
				require.Contains(t, header.Get("Www-Authenticate"), "Bearer")
			}
		})
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, open, http.NoBody)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode, "there is nothing to wait for")
}

// The samples of a client's requests, byte for byte.
func TestSamplesOfRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, address := serve(t, "", w.tools)
	for _, f := range fixtures.Of("mcp") {
		if f.Status != 0 {
			continue // an answer, which the client's tests play
		}
		header := map[string]string{}
		for _, name := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
			if value := f.Header.Get(name); value != "" && value != "true" {
				header[name] = value
			}
		}
		status, answer, _ := post(t, address, string(f.Body), header)
		switch name := strings.TrimPrefix(f.File, "mcp/"); name {
		case "initialize-request.json":
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, answer, `"protocolVersion":"2025-11-25"`)
		case "initialized-request.json":
			require.Equal(t, http.StatusAccepted, status)
			require.Empty(t, answer)
		default: // they call a tool that is not there
			require.Contains(t, answer, `unknown tool`, name)
		}
	}
}

// who has no token is there for this machine alone.
func TestWithoutATokenOnlyForThisMachine(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{":8765", "0.0.0.0:8765", "[::]:8765", "192.0.2.1:8765", "mcp.example:8765", "127.0.0.1", ""} {
		_, err := New(Config{Listen: listen}, Tools{}, quiet)
		require.ErrorContains(t, err, "web.mcp_server.token", listen)
		_, err = New(Config{Listen: listen, Token: "t"}, Tools{}, quiet)
		require.NoError(t, err)
	}
	for _, listen := range []string{"127.0.0.1:8765", "127.9.9.9:0", "[::1]:8765", "localhost:8765"} {
		_, err := New(Config{Listen: listen}, Tools{}, quiet)
		require.NoError(t, err)
	}
}

// A stop lets calls finish; those that take too long are cancelled.
func TestStop(t *testing.T) {
	t.Parallel()
	for _, patient := range []bool{true, false} {
		t.Run(fmt.Sprint("patient ", patient), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s, address := serve(t, "", w.tools)
			type outcome struct {
				text string
				err  error
			}
			done := make(chan outcome, 1)
			c := mcpclient.New(config.MCP{URL: address, Timeout: await.Limit}, everything{}, "1.0")
			defer c.Close()
			go func() {
				text, err := c.Fetch(context.WithoutCancel(t.Context()), w.site.URL+"/slow")
				done <- outcome{text, err}
			}()
			await.Value(t, w.asked)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stopped := make(chan error, 1)
			go func() { stopped <- s.Stop(ctx) }()
			if patient {
				close(w.held)
				got := await.Value(t, done)
				require.NoError(t, got.err)
				require.Contains(t, got.text, "It came in the end.")
				require.NoError(t, await.Value(t, stopped))
			} else {
				cancel()
				require.ErrorIs(t, await.Value(t, stopped), context.Canceled)
				require.Error(t, await.Value(t, done).err)
			}
			require.Nil(t, s.Addr())
		})
	}
}

// Whoever leaves is not worked for any more, in revisions with sessions too.
func TestAClientThatLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, address := serve(t, "", w.tools)
	for _, revision := range []string{"2025-11-25", ""} {
		s, err := official(t, address, "", revision)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "fetch", Arguments: map[string]any{"url": w.site.URL + "/slow"}})
			done <- err
		}()
		await.Value(t, w.asked)
		cancel()
		require.Error(t, await.Value(t, done))
		await.Value(t, w.left)
		require.NoError(t, s.Close())
	}
}

func TestStartStop(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Listen: "127.0.0.1:0"}, newWorld(t).tools, quiet)
	require.NoError(t, err)
	startstoptest.Stress(t, s, func() { require.NotNil(t, s.Addr()) })
}

// Calls beyond the places are told to come again.
func TestPlaces(t *testing.T) {
	t.Parallel()
	inside, leave := make(chan struct{}), make(chan struct{})
	d := door{places: make(chan struct{}, 1), next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-leave
	})}
	enter := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, http.NoBody))
		return w
	}
	first := make(chan int, 1)
	go func() { first <- enter().Code }()
	<-inside
	refused := enter()
	require.Equal(t, http.StatusServiceUnavailable, refused.Code)
	require.Equal(t, "1", refused.Header().Get("Retry-After"))
	close(leave)
	require.Equal(t, http.StatusOK, <-first)
	go func() { first <- enter().Code }()
	<-inside
	require.Equal(t, http.StatusOK, <-first)
}

// an answer has no more characters than were asked for, heads included.
func FuzzText(f *testing.F) {
	f.Add("Title", "https://a.example", "text of a page", "page", 200)
	f.Add(strings.Repeat("제목", 200), strings.Repeat("u", 3000), strings.Repeat("글자 ", 500), "", 300)
	f.Fuzz(func(t *testing.T, title, address, text, query string, n int) {
		if n < minChars || n > maxChars {
			return
		}
		d := page.Document{Title: title, URL: address, Text: text, Published: time.Unix(0, 0)}
		tools := Tools{MaxChars: 6000}
		for _, docs := range [][]page.Document{{d}, {d, d, d}} {
			require.LessOrEqual(t, utf8.RuneCountInString(tools.text(docs, query, n)), n)
		}
	})
}

// brokenWeb fails with words that are not made to be shown.
type brokenWeb struct{}

var errInside = errors.New("no way to http://10.0.0.1/")

func (brokenWeb) Fetch(context.Context, string, string) (enrich.Page, error) {
	return enrich.Page{}, errInside
}

func (brokenWeb) Search(context.Context, string) (enrich.Findings, error) {
	return enrich.Findings{}, errInside
}

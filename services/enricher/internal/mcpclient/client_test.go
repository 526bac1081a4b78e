package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/page"
	"hydrallm/shared/config"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var errBlocked = errors.New("blocked")

// gate blocks addresses with "inside" in them.
type gate struct{}

func (gate) Check(_ context.Context, rawURL string) (*url.URL, error) {
	if strings.Contains(rawURL, "inside") {
		return nil, errBlocked
	}
	return url.Parse(rawURL)
}

// message is what a client posts.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProtocolVersion string
		Name            string
		Arguments       map[string]any
	}
	Result json.RawMessage
	header http.Header
}

// player is a server that plays samples.
type player struct {
	t    *testing.T
	mu   sync.Mutex
	said []message
	// answer plays the answer to a message; n counts those of its method from 1.
	answer func(w http.ResponseWriter, m message, n int)
}

func (p *player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := message{Method: r.Method, header: r.Header}
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &m) != nil {
			p.t.Errorf("not a message: %v %s", err, body)
		}
	}
	p.mu.Lock()
	p.said = append(p.said, m)
	n := 0
	for _, before := range p.said {
		if before.Method == m.Method {
			n++
		}
	}
	p.mu.Unlock()
	p.answer(w, m, n)
}

// methods are what was said so far.
func (p *player) methods() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.said {
		all = append(all, m.Method)
	}
	return all
}

// find gives the nth message of a method.
func (p *player) find(method string, n int) message {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.said {
		if m.Method == method {
			if n--; n == 0 {
				return m
			}
		}
	}
	p.t.Fatalf("no %s", method)
	return message{}
}

// play writes a sample with the id of the message that it answers.
func play(w http.ResponseWriter, file string, m message) {
	f := fixtures.Get("mcp/" + file)
	for key, values := range f.Header {
		w.Header()[http.CanonicalHeaderKey(key)] = values
	}
	w.WriteHeader(f.Status)
	body := f.Body
	for _, id := range []string{"1", "3"} {
		body = bytes.ReplaceAll(body, []byte(`"id":`+id+`,`), append([]byte(`"id":`), append(m.ID, ',')...))
		body = bytes.ReplaceAll(body, []byte(`"id": `+id+`,`), append([]byte(`"id":`), append(m.ID, ',')...))
	}
	_, _ = w.Write(body)
}

func serve(t *testing.T, answer func(w http.ResponseWriter, m message, n int)) (*player, *Client) {
	t.Helper()
	p := &player{t: t, answer: answer}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, connect(t, config.MCP{URL: server.URL + "/mcp", Token: "mcp-token", Timeout: await.Limit})
}

func connect(t *testing.T, cfg config.MCP) *Client {
	t.Helper()
	c := New(cfg, gate{}, "1.0")
	t.Cleanup(c.Close)
	return c
}

// usual answers everything but calls: the session fx-session-1, in events.
func usual(w http.ResponseWriter, m message) {
	switch m.Method {
	case "initialize":
		play(w, "initialize-response.sse", m)
	case "DELETE":
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// events, an older revision, a first event without data, progress and a question of the server before the answer.
func TestEventsOfAServer(t *testing.T) {
	t.Parallel()
	p, c := serve(t, func(w http.ResponseWriter, m message, _ int) {
		if m.Method == "tools/call" {
			play(w, "tools-call-response.sse", m)
			return
		}
		usual(w, m)
	})
	for range 2 {
		text, err := c.SearchAndFetch(t.Context(), "등대 lamp")
		require.NoError(t, err)
		require.Equal(t, "3 results", text)
	}
	_, err := c.Fetch(t.Context(), "https://a.example/x")
	require.NoError(t, err)

	first, second := p.find("tools/call", 1), p.find("tools/call", 3)
	require.Equal(t, toolSearch, first.Params.Name)
	require.Equal(t, map[string]any{"query": "등대 lamp"}, first.Params.Arguments)
	require.Equal(t, toolFetch, second.Params.Name)
	require.Equal(t, map[string]any{"url": "https://a.example/x"}, second.Params.Arguments)
	require.Equal(t, "2025-11-25", p.find("initialize", 1).Params.ProtocolVersion)
	require.Empty(t, p.find("initialize", 1).header.Get("Mcp-Session-Id"))
	for _, m := range []message{p.find("notifications/initialized", 1), first, second} {
		require.Equal(t, "fx-session-1", m.header.Get("Mcp-Session-Id"))
		require.Equal(t, "2025-06-18", m.header.Get("Mcp-Protocol-Version"))
	}
	require.Equal(t, "Bearer mcp-token", first.header.Get("Authorization"))
	await.True(t, func() bool { // the answer to its ping, whose id is its own
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, m := range p.said {
			if string(m.ID) == `"srv-1"` && string(m.Result) == "{}" {
				return true
			}
		}
		return false
	})
	c.Close()
	require.Equal(t, "fx-session-1", p.find("DELETE", 1).header.Get("Mcp-Session-Id"), "a session is ended")
	_, err = c.SearchAndFetch(t.Context(), "lamp")
	require.ErrorContains(t, err, "closed")
}

// what the tool says of its failure is a failure, and nothing is repeated.
func TestAToolThatFails(t *testing.T) {
	t.Parallel()
	p, c := serve(t, func(w http.ResponseWriter, m message, _ int) {
		switch m.Method {
		case "initialize":
			play(w, "initialize-response.json", m) // without sessions
		case "tools/call":
			play(w, "tools-call-iserror.json", m)
		default:
			usual(w, m)
		}
	})
	_, err := c.SearchAndFetch(t.Context(), "lamp")
	require.EqualError(t, err, "search_and_fetch of the MCP server failed: index offline")
	require.Equal(t, []string{"initialize", "notifications/initialized", "tools/call"}, p.methods())
}

// a session that the server does not know any more is begun again, once, whatever the 404 looks like.
func TestSessionsThatExpire(t *testing.T) {
	t.Parallel()
	gone := map[string]func(http.ResponseWriter, message){
		"words of JSON-RPC": func(w http.ResponseWriter, m message) { play(w, "error-404-session.json", m) },
		"plain text":        func(w http.ResponseWriter, _ message) { http.Error(w, "session not found", http.StatusNotFound) },
		"with the id of the call": func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32001,"message":"Session not found"}}`)
		},
	}
	for name, expired := range gone {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var always atomic.Bool
			p, c := serve(t, func(w http.ResponseWriter, m message, n int) {
				switch {
				case m.Method == "tools/call" && (n == 2 || always.Load()):
					expired(w, m)
				case m.Method == "tools/call":
					play(w, "tools-call-response.sse", m)
				default:
					usual(w, m)
				}
			})
			for range 2 { // the second one is told that the session is gone
				text, err := c.SearchAndFetch(t.Context(), "lamp")
				require.NoError(t, err)
				require.Equal(t, "3 results", text)
			}
			require.Empty(t, p.find("initialize", 2).header.Get("Mcp-Session-Id"))
			require.NotContains(t, p.methods(), "DELETE", "the server has forgotten it already")

			always.Store(true)
			_, err := c.SearchAndFetch(t.Context(), "lamp")
			require.ErrorIs(t, err, mcp.ErrSessionMissing)
			require.Len(t, p.calls("tools/call"), 5, "three that were answered or told to begin again, and two that failed")
		})
	}
}

func (p *player) calls(method string) (all []message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.said {
		if m.Method == method {
			all = append(all, m)
		}
	}
	return all
}

// A server that speaks the revision without sessions alone is spoken to in it.
func TestAServerWithoutSessions(t *testing.T) {
	t.Parallel()
	p, c := serve(t, func(w http.ResponseWriter, m message, _ int) {
		w.Header().Set("Content-Type", "application/json")
		switch m.Method {
		case "initialize":
			play(w, "error-400-version.json", m)
		case "server/discover":
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`)
		case "tools/call":
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"resultType":"complete","content":[{"type":"text","text":"3 results"}]}}`)
		default:
			usual(w, m)
		}
	})
	text, err := c.SearchAndFetch(t.Context(), "lamp")
	require.NoError(t, err)
	require.Equal(t, "3 results", text)
	header := p.find("tools/call", 1).header
	require.Equal(t, "2026-07-28", header.Get("Mcp-Protocol-Version"))
	require.Equal(t, "tools/call", header.Get("Mcp-Method"))
	require.Equal(t, toolSearch, header.Get("Mcp-Name"))
	require.Empty(t, header.Get("Mcp-Session-Id"))
}

// every way to fail is an error, in bounded time and memory, and tells neither the address nor the token.
func TestServersThatFail(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, message) {
		return func(w http.ResponseWriter, _ message) { w.WriteHeader(code) }
	}
	reply := func(kind, body string) func(http.ResponseWriter, message) {
		return func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "ID", string(m.ID)))
		}
	}
	huge := strings.Repeat("x", maxAnswer)
	for name, answer := range map[string]func(http.ResponseWriter, message){
		"an error":      status(http.StatusInternalServerError),
		"no permission": status(http.StatusUnauthorized),
		"a redirect": func(w http.ResponseWriter, _ message) {
			w.Header().Set("Location", "https://other.example")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"a page":              reply("text/html", "<html>"),
		"no JSON":             reply("application/json", "{"),
		"an error of JSON":    reply("application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"unknown tool"}}`),
		"no result":           reply("application/json", `{"jsonrpc":"2.0","id":ID}`),
		"events without end":  reply("text/event-stream", "data: "+huge+"\n\n"),
		"too large":           reply("application/json", `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"`+huge+`"}]}}`),
		"an empty event list": reply("text/event-stream", ": nothing\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"initialize", "tools/call"} {
				_, c := serve(t, func(w http.ResponseWriter, m message, _ int) {
					if m.Method == method {
						answer(w, m)
						return
					}
					usual(w, m)
				})
				_, err := c.Fetch(t.Context(), "https://a.example/secret-path")
				require.Error(t, err, method)
				for _, word := range []string{"127.0.0.1", "mcp-token", "secret-path"} {
					require.NotContains(t, err.Error(), word)
				}
			}
		})
	}
	t.Run("the connection breaks", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		defer server.Close()
		_, err := connect(t, config.MCP{URL: server.URL, Timeout: await.Limit}).SearchAndFetch(t.Context(), "lamp")
		require.Error(t, err)
	})
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // from now on a client that leaves is noticed
			<-r.Context().Done()
		}))
		t.Cleanup(server.Close)
		c := connect(t, config.MCP{URL: server.URL, Timeout: 50 * time.Millisecond})
		_, err := c.SearchAndFetch(t.Context(), "lamp")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// what may not be fetched does not reach the server.
func TestTheGuardIsAskedFirst(t *testing.T) {
	t.Parallel()
	p, c := serve(t, func(w http.ResponseWriter, m message, _ int) { usual(w, m) })
	_, err := c.Fetch(t.Context(), "http://inside/")
	require.ErrorIs(t, err, errBlocked)
	require.Empty(t, p.methods())
}

// Many calls at once share a session; a server that comes back gets a new one.
func TestOneSessionForAll(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	p, c := serve(t, func(w http.ResponseWriter, m message, _ int) {
		if down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if m.Method == "tools/call" {
			play(w, "tools-call-response.sse", m)
			return
		}
		usual(w, m)
	})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if text, err := c.SearchAndFetch(t.Context(), "lamp"); err != nil || text != "3 results" {
				t.Errorf("%q %v", text, err)
			}
		})
	}
	wg.Wait()
	require.Len(t, p.calls("initialize"), 1)
	down.Store(true)
	for range 3 {
		_, err := c.SearchAndFetch(t.Context(), "lamp")
		require.Error(t, err)
	}
	down.Store(false)
	text, err := c.SearchAndFetch(t.Context(), "lamp")
	require.NoError(t, err)
	require.Equal(t, "3 results", text)
}

func TestRead(t *testing.T) {
	t.Parallel()
	result := func(parts ...mcp.Content) *mcp.CallToolResult { return &mcp.CallToolResult{Content: parts} }
	text := func(s string) mcp.Content { return &mcp.TextContent{Text: s} }
	for _, tt := range []struct {
		result *mcp.CallToolResult
		want   string
	}{
		{result(), ""},
		{result(text(" a "), &mcp.ImageContent{Data: []byte("x")}, text("b")), "a \n\nb"},
		{result(&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{Text: "c"}}, &mcp.EmbeddedResource{}), "c"},
		{result(text(strings.Repeat("등", page.MaxRunes+1))), strings.Repeat("등", page.MaxRunes)},
		{result(text("a\xff")), "a\uFFFD"},
	} {
		got, err := read("t", tt.result)
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
	}
	failed := result(text(strings.Repeat("a\n", 1000)))
	failed.IsError = true
	_, err := read("t", failed)
	require.Less(t, len(err.Error()), 300)
	require.NotContains(t, err.Error(), "\n")
}

// Package mcpclient asks a server that speaks MCP over streamable HTTP to search and to fetch. The server is a backend of the
// web like the gateway's own work: who has one of New calls SearchAndFetch and Fetch, and on any error does the work itself if
// web.mcp.fallback says so. Of the texts that come back as much may be used as passage.Pick leaves; they are as untrusted as any page.
package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"hydrallm/services/enricher/internal/page"
	"hydrallm/shared/config"
)

// The tools of the server.
const (
	toolSearch = "search_and_fetch"
	toolFetch  = "fetch"
)

const (
	maxAnswer = 4 << 20 // bytes of one answer of the server
	maxReason = 200     // characters of what the server says of a failure
	// handshake is the revision that is offered first, since servers of the next one also speak it, and those of earlier ones do not know the
	// question by which a client of the next one begins.
	handshake = "2025-11-25"
)

// Guard judges addresses before the server gets them. A guard.Guard is one.
type Guard interface {
	Check(ctx context.Context, rawURL string) (*url.URL, error)
}

// Client calls the tools of one server over one session, which it begins with the first call. It is safe for concurrent use.
type Client struct {
	cfg   config.MCP
	guard Guard
	sdk   *mcp.Client
	http  *http.Client
	stop  context.CancelFunc
	life  context.Context //nolint:containedctx // of sessions, which outlive the calls that begin them
	tasks sync.WaitGroup

	mu      sync.Mutex
	current *session // nil = the next call begins one
}

// session is a session, or the attempt to begin one.
type session struct {
	begun chan struct{} // closed when the others are set
	*mcp.ClientSession
	err error
}

// New makes a client for the server of cfg, of which Fallback is left to the caller. version is that of the gateway. Close ends it.
func New(cfg config.MCP, guard Guard, version string) *Client {
	c := &Client{
		cfg: cfg, guard: guard, http: newHTTP(cfg.Token.Reveal()),
		sdk: mcp.NewClient(&mcp.Implementation{Name: "HydraLLM", Version: version}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}),
	}
	c.life, c.stop = context.WithCancel(context.Background())
	return c
}

// Close ends the session and waits for it. Calls fail afterwards.
func (c *Client) Close() {
	c.mu.Lock()
	last := c.current
	c.current = &session{begun: make(chan struct{}), err: errors.New("the client is closed")}
	close(c.current.begun)
	c.mu.Unlock()
	c.stop() // of a session that is being begun
	if last != nil {
		c.end(last)
	}
	c.tasks.Wait()
	c.http.CloseIdleConnections()
}

// SearchAndFetch gives the text of pages that answer a question, "" if the server found none, at most page.MaxRunes characters.
func (c *Client) SearchAndFetch(ctx context.Context, query string) (string, error) {
	return c.call(ctx, toolSearch, map[string]any{"query": query})
}

// Fetch gives the text of a page. The guard is asked first, and its error given as it is: then the server was not asked, and nobody else should be.
func (c *Client) Fetch(ctx context.Context, rawURL string) (string, error) {
	u, err := c.guard.Check(ctx, rawURL)
	if err != nil {
		return "", err
	}
	return c.call(ctx, toolFetch, map[string]any{"url": u.String()})
}

// call calls a tool. If the server does not know the session any more, another one is begun and the call repeated, once.
func (c *Client) call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		s, err := c.session(ctx)
		if err != nil {
			return "", fmt.Errorf("beginning a session with the MCP server: %w", hide(err))
		}
		result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err == nil {
			return read(tool, result)
		}
		if c.lost(s, err) && attempt == 1 && ctx.Err() == nil {
			continue
		}
		return "", fmt.Errorf("calling %s of the MCP server: %w", tool, hide(err))
	}
}

// lost drops a session that can't be used any more, and says whether the call may be repeated with another one: the server knows it no longer,
// or it was lost with another call.
func (c *Client) lost(s *session, err error) (again bool) {
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // the session is as good as before
	}
	c.mu.Lock()
	mine := c.current == s
	if mine {
		c.current = nil
	}
	c.mu.Unlock()
	if mine {
		c.tasks.Go(func() { c.end(s) })
	}
	return errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, mcp.ErrConnectionClosed)
}

// session gives the session, and begins one if there is none. One is begun at a time, for all who wait.
func (c *Client) session(ctx context.Context) (*session, error) {
	c.mu.Lock()
	s := c.current
	if s == nil {
		s = &session{begun: make(chan struct{})}
		c.current = s
		c.tasks.Go(func() { c.begin(s) }) //nolint:contextcheck // a session outlives the call that begins it
	}
	c.mu.Unlock()
	select {
	case <-s.begun:
		return s, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *Client) begin(s *session) {
	defer close(s.begun)
	ctx, cancel := context.WithTimeout(c.life, c.cfg.Timeout)
	defer cancel()
	connect := func(options *mcp.ClientSessionOptions) (*mcp.ClientSession, error) {
		return c.sdk.Connect(ctx, &mcp.StreamableClientTransport{
			Endpoint: c.cfg.URL, HTTPClient: c.http, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxAnswer,
		}, options)
	}
	s.ClientSession, s.err = connect(&mcp.ClientSessionOptions{ProtocolVersion: handshake})
	if refused, ok := errors.AsType[*jsonrpc.Error](s.err); ok && (refused.Code == mcp.CodeUnsupportedProtocolVersion || refused.Code == jsonrpc.CodeMethodNotFound) {
		s.ClientSession, s.err = connect(nil) // it speaks a revision without sessions alone
	}
	if s.err != nil {
		c.mu.Lock()
		if c.current == s {
			c.current = nil // the next call tries again
		}
		c.mu.Unlock()
	}
}

// end says goodbye.
func (c *Client) end(s *session) {
	<-s.begun
	if s.ClientSession != nil {
		_ = s.ClientSession.Close() // the server may have forgotten it, or be gone
	}
}

// read gives the text of a result.
func read(tool string, result *mcp.CallToolResult) (string, error) {
	var texts []string
	for _, content := range result.Content {
		switch part := content.(type) {
		case *mcp.TextContent:
			texts = append(texts, part.Text)
		case *mcp.EmbeddedResource:
			if part.Resource != nil {
				texts = append(texts, part.Resource.Text)
			}
		}
	}
	text := strings.TrimSpace(strings.ToValidUTF8(strings.Join(texts, "\n\n"), "\uFFFD"))
	if result.IsError {
		return "", fmt.Errorf("%s of the MCP server failed: %s", tool, first(strings.Join(strings.Fields(text), " "), maxReason))
	}
	return first(text, page.MaxRunes), nil
}

// first gives the first n characters.
func first(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// Package search asks search engines for pages, one after the other until one has results. It reads no page that it finds:
// whoever does checks the addresses for good.
package search

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"hydrallm/shared/config"
	"hydrallm/shared/telemetry"
)

const (
	maxResults    = 10      // of one search
	maxAnswer     = 2 << 20 // bytes of an engine's answer, decompressed
	engineTimeout = 8 * time.Second
)

// ErrEmpty says that there was nothing to search for.
var ErrEmpty = errors.New("the query is empty")

// Result is one page that an engine names.
type Result struct {
	Title   string // one line; may be empty
	URL     string // absolute, http or https; allowed as far as it tells itself
	Snippet string // one line; may be empty
}

// Doer sends requests to engines; an http.Client is one. It should not follow redirects to other hosts: what comes from another host than the
// one that was asked is refused.
type Doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// engine is a search engine: how it is asked, and what its answers mean. It is safe for concurrent use.
type engine interface {
	// request gives the request for q, without headers that all requests have.
	request(ctx context.Context, q query) (*http.Request, error)
	// read gives the results of an answer in their order, as the engine has them. None without an error: the engine knows none.
	read(a answer) ([]Result, error)
	// own tells the engine's own hosts, where no result can be.
	own(host string) bool
}

// Chain asks engines in their order. It is safe for concurrent use.
type Chain struct {
	members []*member
	client  Doer
	allowed func(url string) bool
	log     *slog.Logger
}

// member is an engine of a chain.
type member struct {
	engine
	name  string
	state rest
}

// New makes a chain of the engines that web.Search names; what is not known or has no address is left out. doer sends the requests; nil means
// Client(). allowed says whether the address of a result may be read, as far as it tells itself: others are no results, so that who has nothing else leads to
// the next engine. Why an engine was passed over is logged with log.
func New(web config.Web, doer Doer, allowed func(url string) bool, log *slog.Logger) *Chain {
	if doer == nil {
		doer = Client()
	}
	c := &Chain{client: doer, allowed: allowed, log: log}
	for _, name := range web.Search {
		if e := named(name, web); e != nil {
			c.members = append(c.members, &member{engine: e, name: name})
		}
	}
	return c
}

// named gives an engine by the name that it has in settings, nil if there is none or nobody said where it is.
func named(name string, web config.Web) engine {
	base := func(fallback string) string {
		if other := web.Engines[name]; other != "" {
			fallback = other
		}
		return strings.TrimRight(fallback, "/")
	}
	switch name {
	case "duckduckgo":
		return duckduckgo{base: base("https://html.duckduckgo.com")}
	case "bing":
		return bing{base: base("https://www.bing.com")}
	case "openserp":
		if at := base(web.OpenSERP.URL); at != "" {
			return openserp{base: at, engine: web.OpenSERP.Engine}
		}
	case "searxng":
		if at := base(web.SearxNGURL); at != "" {
			return searxng{base: at}
		}
	}
	return nil
}

// Search gives the results of the first engine that has some, at most ten, each address once. No results and no error means that an engine
// answered and none knows a page. The error joins why each engine gave nothing, or is the cause of ctx. Of a long text only the beginning is
// searched for.
func (c *Chain) Search(ctx context.Context, text string) ([]Result, error) {
	q := newQuery(text)
	if q.text == "" {
		return nil, ErrEmpty
	}
	var (
		reasons  []error
		answered bool
	)
	for i, m := range c.members {
		if err := m.state.check(); err != nil {
			reasons = append(reasons, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		results, err := c.ask(ctx, m, q, len(c.members)-i)
		if ctx.Err() != nil { // nobody waits any more, which is not the engine's fault
			return nil, context.Cause(ctx)
		}
		m.state.note(err)
		switch {
		case err != nil:
			c.log.WarnContext(ctx, "a search engine gave no results", slog.String("engine", m.name), slog.Any("error", err))
			reasons = append(reasons, fmt.Errorf("%s: %w", m.name, err))
		case len(results) > 0:
			return results, nil
		default:
			answered = true
		}
	}
	if answered {
		return nil, nil
	}
	if len(c.members) == 0 {
		return nil, errors.New("there is no search engine")
	}
	return nil, errors.Join(reasons...)
}

// ask asks one engine. It has a few seconds, and not more than its share of the time that is left: one more share is for reading pages.
func (c *Chain) ask(ctx context.Context, m *member, q query, left int) (found []Result, err error) {
	ctx, end := telemetry.StartSpan(ctx, "search "+m.name, trace.SpanKindClient)
	defer func() { end(err) }()
	limit := engineTimeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/time.Duration(left+1))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	r, err := m.request(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	a, err := c.send(r, q)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSlow) {
			return nil, errSlow
		}
		return nil, err
	}
	found, err = m.read(a)
	if err != nil {
		return nil, err
	}
	return tidy(found, func(u *url.URL) bool {
		return u.Host == r.URL.Host || m.own(strings.ToLower(u.Hostname())) || !c.allowed(u.String())
	}), nil
}

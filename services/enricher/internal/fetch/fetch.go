package fetch

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"hydrallm/services/enricher/internal/guard"
)

const (
	// MaxBody is the most bytes of a page after unpacking.
	MaxBody      = 5 << 20
	maxRedirects = 5
	maxHeader    = 64 << 10 // bytes of the headers of an answer

	// The name says who asks, in the form that servers expect from machines.
	userAgent = "Mozilla/5.0 (compatible; HydraLLM)"
	accept    = "text/html,application/xhtml+xml,text/plain;q=0.9,application/pdf;q=0.8,application/json;q=0.8,*/*;q=0.1"
	languages = "en,ko;q=0.9,*;q=0.5"
)

// limits of time.
type limits struct {
	total   time.Duration // for a page, with all redirects and the wait for a place
	silence time.Duration // before the headers of an answer, between two pieces of a body, while TLS is agreed on
}

// Config of a fetcher. A zero value of a field stands for its default.
type Config struct {
	Concurrent int // most pages at a time, each of which may hold MaxBody bytes until it is released; 24
	PerHost    int // most of them to one host and port; 4
}

// Fetcher reads pages. Many may use it at once; it holds no connection between two requests, so there is nothing to close.
type Fetcher struct {
	guard     *guard.Guard
	transport *http.Transport
	limits    limits
	places    chan struct{}
	hosts     hosts
}

// Response is a page as it came, unpacked.
type Response struct {
	URL         string // the final one
	Status      int    // 200 to 202
	ContentType string // as the server said; guessed from the body if it said nothing
	Body        []byte // at most MaxBody; the caller's

	leave func()
}

// Release gives the place of a page back, once. Until then it counts as one of those that are read at a time, because its body is in memory. On nil it does
// nothing.
func (r *Response) Release() {
	if r != nil && r.leave != nil {
		r.leave()
		r.leave = nil
	}
}

// New makes a fetcher all of whose connections are made by g.
func New(g *guard.Guard, cfg Config) *Fetcher {
	return newFetcher(g, cfg, limits{total: 30 * time.Second, silence: 10 * time.Second})
}

func newFetcher(g *guard.Guard, cfg Config, limits limits) *Fetcher {
	return &Fetcher{
		guard:  g,
		limits: limits,
		places: make(chan struct{}, cmp.Or(cfg.Concurrent, 24)),
		hosts:  hosts{limit: cmp.Or(cfg.PerHost, 4), gates: map[string]*gate{}},
		transport: &http.Transport{ // without Proxy: the environment has no say
			DialContext:            g.DialContext,
			DisableKeepAlives:      true,
			DisableCompression:     true, // bodies are unpacked here, within limits
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: maxHeader,
			ResponseHeaderTimeout:  limits.silence,
			TLSHandshakeTimeout:    limits.silence,
		},
	}
}

// Fetch reads the page at rawURL, following redirects, each of which is judged like the first address. The caller releases the page. An error
// is an *Error.
func (f *Fetcher) Fetch(ctx context.Context, rawURL string) (*Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.limits.total, errTotal)
	defer cancel()
	var seen []string
	for next := rawURL; len(seen) <= maxRedirects; {
		u, err := f.guard.Parse(next)
		if err != nil {
			return nil, classify(ctx, err)
		}
		if slices.Contains(seen, u.String()) { // nothing is kept between two requests, so the answer would be the same
			break
		}
		seen = append(seen, u.String())
		page, location, err := f.get(ctx, u)
		if err != nil {
			return nil, classify(ctx, err)
		}
		if page != nil {
			return page, nil
		}
		to, err := u.Parse(location)
		if err != nil {
			break
		}
		next = to.String()
	}
	return nil, &Error{Kind: Redirects}
}

// get makes one request. It returns a page, or where the answer leads.
func (f *Fetcher) get(ctx context.Context, u *url.URL) (page *Response, location string, err error) {
	leaveHost, leave, err := f.enter(ctx, u.Host)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		leaveHost()
		if page == nil {
			leave()
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", accept)
	request.Header.Set("Accept-Language", languages)
	request.Header.Set("Accept-Encoding", "gzip, deflate")
	answer, err := f.transport.RoundTrip(request) // not a http.Client: it would follow redirects and has a say about headers
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		if location = answer.Header.Get("Location"); location != "" {
			return nil, location, nil
		}
		return nil, "", &Error{Kind: Status, Status: answer.StatusCode}
	case http.StatusOK, http.StatusCreated, http.StatusAccepted:
	default:
		return nil, "", &Error{Kind: Status, Status: answer.StatusCode}
	}
	kind := answer.Header.Get("Content-Type")
	if kind != "" && !isText(kind) {
		return nil, "", &Error{Kind: Type}
	}
	body, err := readBody(answer, f.limits.silence, func() { cancel(errIdle) })
	if err != nil {
		return nil, "", classify(ctx, err)
	}
	if kind == "" {
		if kind = http.DetectContentType(body); !isText(kind) {
			return nil, "", &Error{Kind: Type}
		}
	}
	return &Response{URL: u.String(), Status: answer.StatusCode, ContentType: kind, Body: body, leave: leave}, "", nil
}

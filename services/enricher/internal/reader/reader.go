// Package reader reads pages of the web: with plain HTTP, which is enough for most, and in a browser where a page is made by its scripts.
package reader

import (
	"context"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"hydrallm/services/enricher/internal/browser"
	"hydrallm/services/enricher/internal/fetch"
	"hydrallm/services/enricher/internal/page"
	"hydrallm/shared/telemetry"
)

// Fetcher gets what a server answers with, which is to be released. Its error is a *fetch.Error.
type Fetcher interface {
	Fetch(ctx context.Context, rawURL string) (*fetch.Response, error)
}

// Renderer shows a page and gives the document that its scripts have made.
type Renderer interface {
	Render(ctx context.Context, rawURL string) (*browser.Page, error)
}

// Extract makes a document of an answer.
type Extract func(body []byte, contentType, pageURL string) (page.Document, error)

// Use says which pages the browser shows; the values are those of web.browser.
type Use string

// Uses of the browser.
const (
	Auto   Use = "auto"   // those that plain HTTP gives no text of
	Never  Use = "never"  // none
	Always Use = "always" // all that are HTML
)

// Reader reads pages. Many may use it at once.
type Reader struct {
	fetch   Fetcher
	render  Renderer
	extract Extract
	use     Use
	log     *slog.Logger
	parsers chan struct{} // has room for those at work
}

// New makes a reader. Without a renderer it is as with Never.
func New(fetch Fetcher, render Renderer, extract Extract, use Use, log *slog.Logger) *Reader {
	if render == nil {
		use = Never
	}
	return &Reader{fetch, render, extract, use, log, make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Read gives the text of a page. Whatever becomes of the browser, what plain HTTP gave stays: its text, or else its error, which is a *fetch.Error or
// that of Extract.
func (r *Reader) Read(ctx context.Context, rawURL string) (page.Document, error) {
	doc, more, err := r.plain(ctx, rawURL)
	if !more {
		return doc, err
	}
	shown, ok := r.show(ctx, rawURL)
	if !ok {
		return doc, err
	}
	if err == nil && (r.use == Auto && length(&shown) <= length(&doc)) {
		return doc, nil // the scripts have added nothing, or a wall has hidden the text
	}
	return shown, nil
}

// plain reads a page with plain HTTP. more says whether a browser may read more of it.
func (r *Reader) plain(ctx context.Context, rawURL string) (doc page.Document, more bool, err error) {
	within, end := span(ctx, "fetch page", rawURL)
	answer, err := r.fetch.Fetch(within, rawURL)
	end(err)
	defer answer.Release()
	if err == nil {
		doc, err = r.parse(ctx, answer.Body, answer.ContentType, answer.URL)
	}
	return doc, r.needsBrowser(answer, &doc, err), err
}

// parse extracts, as many pages at a time as there are processors: a page takes many times its size while it is done, and more at once would not be faster
//
func (r *Reader) parse(ctx context.Context, body []byte, contentType, pageURL string) (page.Document, error) {
	select {
	case r.parsers <- struct{}{}:
	case <-ctx.Done():
		return page.Document{}, context.Cause(ctx)
	}
	defer func() { <-r.parsers }()
	return r.extract(body, contentType, pageURL)
}

// show reads a page in the browser. The last tenth of the time is kept, so that a browser that hangs does not take it from what is known.
func (r *Reader) show(ctx context.Context, rawURL string) (doc page.Document, ok bool) {
	limited := ctx
	if end, has := ctx.Deadline(); has {
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadline(ctx, end.Add(-time.Until(end)/10))
		defer cancel()
	}
	limited, end := span(limited, "render page", rawURL)
	shown, err := r.render.Render(limited, rawURL)
	end(err)
	if err == nil && shown.Status >= http.StatusBadRequest {
		return doc, false
	}
	if err == nil {
		doc, err = r.parse(ctx, shown.HTML, "text/html; charset=utf-8", shown.URL)
	}
	if err != nil && !errors.Is(err, browser.ErrNone) { // which has a line of its own
		r.log.DebugContext(ctx, "a page was not read in the browser", slog.Any("error", err))
	}
	return doc, err == nil
}

// span begins the span of reading a page, which tells of its address nothing but the host: the rest may be what a user writes.
func span(ctx context.Context, name, rawURL string) (_ context.Context, end func(error)) {
	host := ""
	if u, err := url.Parse(rawURL); err == nil {
		host = u.Hostname()
	}
	return telemetry.StartSpan(ctx, name, trace.SpanKindClient, attribute.String("server.address", host))
}

// needsBrowser says whether a browser may read more of a page than answer and doc, or err, tell.
func (r *Reader) needsBrowser(answer *fetch.Response, doc *page.Document, err error) bool {
	switch {
	case r.use == Never:
		return false
	case answer == nil:
		return mayHelp(err)
	case !isHTML(answer):
		return false
	case r.use == Always || err != nil:
		return true
	default:
		return needsScripts(answer.Body, length(doc))
	}
}

// mayHelp says whether a browser may have more success. Many servers turn away who is no browser, or first let a script prove that it runs: 403, 503.
// Some set a cookie and redirect to the same address, which is a circle for who keeps no cookies. A server that asks for patience (429) or for
// another client's credentials (401), and an address that leads nowhere, are no matter of the client.
func mayHelp(err error) bool {
	failed, ok := errors.AsType[*fetch.Error](err)
	if !ok {
		return false
	}
	switch failed.Kind {
	case fetch.Status:
		return failed.Status == http.StatusForbidden || failed.Status == http.StatusServiceUnavailable
	case fetch.Redirects:
		return true
	default:
		return false
	}
}

func isHTML(answer *fetch.Response) bool {
	kind, _, err := mime.ParseMediaType(answer.ContentType)
	if err != nil {
		kind, _, _ = strings.Cut(answer.ContentType, ";")
	}
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "text/html" || kind == "application/xhtml+xml"
}

func length(doc *page.Document) int { return utf8.RuneCountInString(strings.TrimSpace(doc.Text)) }

package reader

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/browser"
	"hydrallm/services/enricher/internal/fetch"
	"hydrallm/services/enricher/internal/page"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	address = "http://example.com/page"
	shell   = `<div id=root></div><script src=/main.js></script>`
)

var errNoText = errors.New("no text")

// extractText is an extractor that finds text between p tags alone.
func extractText(body []byte, _, pageURL string) (page.Document, error) {
	_, text, _ := strings.Cut(string(body), "<p>")
	text, _, _ = strings.Cut(text, "</p>")
	if text == "" {
		return page.Document{URL: pageURL}, errNoText
	}
	return page.Document{URL: pageURL, Text: text}, nil
}

// web answers both the fetcher and the browser.
type web struct {
	answer *fetch.Response
	err    error

	shown   *browser.Page
	showErr error
	renders int
}

func (w *web) Fetch(context.Context, string) (*fetch.Response, error) { return w.answer, w.err }

func (w *web) Render(context.Context, string) (*browser.Page, error) {
	w.renders++
	return w.shown, w.showErr
}

func htmlAnswer(body string) *fetch.Response {
	return &fetch.Response{URL: address, Status: http.StatusOK, ContentType: "text/html; charset=utf-8", Body: []byte(body)}
}

//
func TestRead(t *testing.T) {
	t.Parallel()
	article := strings.Repeat("Words of an article. ", 50)
	shown := &browser.Page{URL: address + "#shown", Status: http.StatusOK, HTML: []byte("<p>shown by scripts</p>")}
	status := func(status int) error { return &fetch.Error{Kind: fetch.Status, Status: status} }
	failed := errors.New("the page takes too long")
	for name, c := range map[string]struct {
		use     Use
		web     web
		want    string
		wantErr error
		renders int
	}{
		"an article":                    {Auto, web{answer: htmlAnswer("<p>" + article + "</p>" + shell)}, article, nil, 0},
		"a page of scripts":             {Auto, web{answer: htmlAnswer(shell), shown: shown}, "shown by scripts", nil, 1},
		"a short text and scripts":      {Auto, web{answer: htmlAnswer("<p>Loading</p>" + shell), shown: shown}, "shown by scripts", nil, 1},
		"scripts that add nothing":      {Auto, web{answer: htmlAnswer("<p>A title of some length</p>" + shell), shown: shown}, "A title of some length", nil, 1},
		"the browser fails":             {Auto, web{answer: htmlAnswer("<p>Loading</p>" + shell), showErr: failed}, "Loading", nil, 1},
		"no browser":                    {Auto, web{answer: htmlAnswer(shell), showErr: browser.ErrNone}, "", errNoText, 1},
		"shown without text":            {Auto, web{answer: htmlAnswer("<p>Loading</p>" + shell), shown: &browser.Page{Status: 200}}, "Loading", nil, 1},
		"shown as an error":             {Auto, web{answer: htmlAnswer(shell), shown: &browser.Page{Status: 404, HTML: shown.HTML}}, "", errNoText, 1},
		"empty HTML":                    {Auto, web{answer: htmlAnswer(""), shown: shown}, "shown by scripts", nil, 1},
		"no HTML":                       {Auto, web{answer: &fetch.Response{ContentType: "text/plain", Body: []byte(shell)}}, "", errNoText, 0},
		"refused as no browser":         {Auto, web{err: status(403), shown: shown}, "shown by scripts", nil, 1},
		"a challenge":                   {Auto, web{err: status(503), shown: shown}, "shown by scripts", nil, 1},
		"refused in the browser, too":   {Auto, web{err: status(403), shown: &browser.Page{Status: 403, HTML: shown.HTML}}, "", status(403), 1},
		"a circle":                      {Auto, web{err: &fetch.Error{Kind: fetch.Redirects}, shown: shown}, "shown by scripts", nil, 1},
		"not found":                     {Auto, web{err: status(404)}, "", status(404), 0},
		"too many requests":             {Auto, web{err: status(429)}, "", status(429), 0},
		"blocked":                       {Auto, web{err: &fetch.Error{Kind: fetch.Blocked}}, "", &fetch.Error{Kind: fetch.Blocked}, 0},
		"no text":                       {Auto, web{err: &fetch.Error{Kind: fetch.Type}}, "", &fetch.Error{Kind: fetch.Type}, 0},
		"no connection":                 {Auto, web{err: &fetch.Error{Kind: fetch.Network}}, "", &fetch.Error{Kind: fetch.Network}, 0},
		"never":                         {Never, web{answer: htmlAnswer(shell)}, "", errNoText, 0},
		"never, refused as no browser":  {Never, web{err: status(403)}, "", status(403), 0},
		"always":                        {Always, web{answer: htmlAnswer("<p>" + article + "</p>"), shown: shown}, "shown by scripts", nil, 1},
		"always, and the browser fails": {Always, web{answer: htmlAnswer("<p>plain</p>"), showErr: failed}, "plain", nil, 1},
		"always, but no HTML":           {Always, web{answer: &fetch.Response{ContentType: "application/pdf", Body: []byte("<p>pdf</p>")}}, "pdf", nil, 0},
		"always, but blocked":           {Always, web{err: &fetch.Error{Kind: fetch.Blocked}}, "", &fetch.Error{Kind: fetch.Blocked}, 0},
	} {
		w := &c.web
		doc, err := New(w, w, extractText, c.use, slog.New(slog.DiscardHandler)).Read(t.Context(), address)
		require.Equal(t, c.wantErr, err, name)
		require.Equal(t, c.want, doc.Text, name)
		require.Equal(t, c.renders, w.renders, name)
	}
}

// what is known is there while there is time to use it.
func TestBrowserGetsNotAllTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		begin := time.Now()
		doc, err := New(&web{answer: htmlAnswer("<p>Loading</p>" + shell)}, hung{}, extractText, Auto, slog.New(slog.DiscardHandler)).Read(ctx, address)
		require.NoError(t, err)
		require.Equal(t, "Loading", doc.Text)
		require.Equal(t, 36*time.Second, time.Since(begin))
	})
}

// hung is a browser that hangs.
type hung struct{}

func (hung) Render(ctx context.Context, _ string) (*browser.Page, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// a page is extracted when a processor is free for it, and waits no longer than its request.
func TestExtractingIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pages = 40
		begun, goOn := make(chan struct{}, pages), make(chan struct{})
		r := New(&web{answer: htmlAnswer("")}, nil, func([]byte, string, string) (page.Document, error) {
			begun <- struct{}{}
			<-goOn
			panic("a page that no parser can bear")
		}, Never, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ends := make(chan error, pages)
		read := func(ctx context.Context) {
			go func() {
				defer func() { _ = recover() }()
				_, err := r.Read(ctx, address)
				ends <- err
			}()
		}
		limit := runtime.GOMAXPROCS(0)
		for range limit {
			read(t.Context())
		}
		synctest.Wait()
		read(ctx)
		read(t.Context())
		synctest.Wait()
		require.Len(t, begun, limit)
		cancel()
		require.ErrorIs(t, <-ends, context.Canceled)
		close(goOn) // places come back from those that panic
		synctest.Wait()
		require.Len(t, begun, limit+1)
	})
}

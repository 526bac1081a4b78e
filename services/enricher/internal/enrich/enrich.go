package enrich

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"unicode/utf8"

	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/surface"
)

// Config is what an Enricher goes by.
type Config struct {
	Web    config.Web
	Locale func() string // of the block, as it is now: en | ko; nil = en
}

// Enricher adds text from the web to requests. It is safe for concurrent use.
type Enricher struct {
	cfg        Config
	web        Web
	classifier Classifier
	log        *slog.Logger
}

// New makes an enricher.
func New(cfg Config, web Web, classifier Classifier, log *slog.Logger) *Enricher {
	return &Enricher{cfg: cfg, web: web, classifier: classifier, log: log}
}

func (e *Enricher) locale() string {
	if e.cfg.Locale == nil {
		return "en"
	}
	return e.cfg.Locale()
}

// Result is what becomes of a request.
type Result struct {
	Body   []byte           // nil = it stays as it is
	Chars  int              // of the text that was added, in code points
	Visits []contract.Visit // what was fetched and searched, whatever came of it
}

// Enrich gives the body of a request with text from the web, if it needs some and there is some. Whatever fails, the request goes on without
//
func (e *Enricher) Enrich(ctx context.Context, r *contract.Request, body []byte) (res Result) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Web.Deadline)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			e.log.ErrorContext(ctx, "enriching a request panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			res = Result{}
		}
	}()
	q, ok := questionOf(r, body)
	if !ok {
		return Result{}
	}
	pages, visits := e.collect(ctx, r, q)
	res.Visits = visits
	text, used := block(pages, q.query, e.locale(), e.cfg.Web.MaxChars)
	if text == "" {
		return res
	}
	edited := surface.FormOf(r.Surface).WithContext(body, message(text))
	if bytes.Equal(edited, body) { // the surface has no place for it
		return res
	}
	for i := range visits {
		if v := &visits[i]; v.Kind == contract.VisitFetch {
			v.Content = used[v.URL]
		}
	}
	res.Body, res.Chars = edited, utf8.RuneCountInString(text)
	return res
}

// collect fetches what is named, and searches when that gave nothing and the request wants or needs it.
func (e *Enricher) collect(ctx context.Context, r *contract.Request, q question) (pages []Page, visits []contract.Visit) {
	auto := e.cfg.Web.Enabled
	if r.Web.Auto != nil {
		auto = *r.Web.Auto
	}
	pages, visits = fetchAll(ctx, e.web, urls(q.text, r.Web.Fetch, auto), q.query)
	if len(pages) > 0 {
		return pages, visits
	}
	query := q.query
	switch {
	case r.Web.Search:
		query = cmp.Or(query, inOneLine(q.plain)) // nothing but addresses is asked for: something may be known of them
	case !auto || query == "" || !e.judge(ctx, r, q):
		return nil, visits
	}
	if query == "" {
		return nil, visits
	}
	found, more := e.search(ctx, query)
	return found, append(visits, more...)
}

// judge says whether a question needs the web. It is asked of people, who offer no tools, and where a search is offered.
func (e *Enricher) judge(ctx context.Context, r *contract.Request, q question) bool {
	if r.Traits.Tools && !r.Traits.Searches {
		return false
	}
	verdict := e.classifier.NeedsWeb(ctx, q.plain)
	e.log.DebugContext(ctx, "web intent", slog.Bool("web", verdict.Web), slog.String("why", verdict.Why))
	return verdict.Web
}

// LogLine is the line that tells of text that was added. Its wording is fixed.
func LogLine(chars int, session string) string {
	if session == "" {
		session = "None"
	}
	return fmt.Sprintf("Web context injected: %d chars into request.messages[-2] (session=%s)", chars, session)
}

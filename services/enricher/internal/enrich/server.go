package enrich

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/page"
	"hydrallm/shared/telemetry"
)

// Server is a server that fetches and searches, as text. Errors that are guard.ErrBlocked say that it was not asked, and that nobody should be.
type Server interface {
	Fetch(ctx context.Context, url string) (string, error)
	SearchAndFetch(ctx context.Context, query string) (string, error)
}

// ByServer has a server fetch and search.
type ByServer struct {
	Server   Server
	Fallback Web // does the work when the server fails; nil = nobody does
	Log      *slog.Logger
}

// nothing is how servers say in a sentence that a search has no results.
var nothing = regexp.MustCompile(`(?i)^[\s*_#]*(?:(?:no|zero|0) (?:(?:search|web|relevant|matching) )*(?:results?|pages?|matches|documents?|hits)|nothing (?:was )?found|(?:검색 ?)?결과(?:가|를)? ?(?:없|찾을 수 없))` +
	`[^\n]{0,160}\s*$`)

var errEmpty = errors.New("the server found no text")

// Fetch implements Web.
func (w *ByServer) Fetch(ctx context.Context, url, query string) (Page, error) {
	within, end := telemetry.StartSpan(ctx, "fetch page by server", trace.SpanKindClient)
	text, err := w.Server.Fetch(within, url)
	end(err)
	switch {
	case err == nil && strings.TrimSpace(text) == "":
		return Page{}, errEmpty
	case err == nil:
		return Page{Document: page.Document{URL: url, Text: text}}, nil
	case w.Fallback == nil || errors.Is(err, guard.ErrBlocked):
		return Page{}, err
	}
	w.falls(ctx, err)
	return w.Fallback.Fetch(ctx, url, query)
}

// Search implements Web.
func (w *ByServer) Search(ctx context.Context, query string) (Findings, error) {
	within, end := telemetry.StartSpan(ctx, "search by server", trace.SpanKindClient)
	text, err := w.Server.SearchAndFetch(within, query)
	end(err)
	switch {
	case err == nil && (strings.TrimSpace(text) == "" || nothing.MatchString(text)):
		return Findings{}, nil
	case err == nil:
		return Findings{Results: 1, Pages: []Page{{Document: page.Document{Text: text}}}}, nil
	case w.Fallback == nil:
		return Findings{}, err
	}
	w.falls(ctx, err)
	return w.Fallback.Search(ctx, query)
}

func (w *ByServer) falls(ctx context.Context, err error) {
	w.Log.WarnContext(ctx, "the search server failed, the gateway does its work itself", slog.Any("error", err))
}

package enrich

import (
	"context"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"hydrallm/shared/contract"
)

// fetchAll reads pages at the same time and gives those that could be read, in the order of their addresses. query is what they are read for.
func fetchAll(ctx context.Context, web Web, urls []string, query string) ([]Page, []contract.Visit) {
	pages, visits := make([]Page, len(urls)), make([]contract.Visit, len(urls))
	var reading sync.WaitGroup
	for i, url := range urls {
		reading.Go(func() { pages[i], visits[i] = fetch(ctx, web, url, query) })
	}
	reading.Wait()
	read := pages[:0]
	for _, p := range pages {
		if !p.Empty() {
			read = append(read, p)
		}
	}
	return read, visits
}

// fetch reads a page. One that is more than its parser can bear costs nothing but itself.
func fetch(ctx context.Context, web Web, url, query string) (p Page, v contract.Visit) {
	v = contract.Visit{Kind: contract.VisitFetch, URL: url, Query: query, Status: contract.VisitError, At: time.Now()}
	defer func() {
		_ = recover() // the status says that it was the gateway's fault
		v.LatencyMS = time.Since(v.At).Milliseconds()
	}()
	got, err := web.Fetch(ctx, url, query)
	if v.Status = statusOf(err == nil && !got.Empty(), got.Cached); err == nil {
		p = got
		p.Asked = url
		v.Title, v.Chars, v.Summary = cut(oneLine(p.Title), maxTitle), utf8.RuneCountInString(p.Text), contract.Summarise(p.Text)
	}
	return p, v
}

// search searches, and reads the pages that it led to.
func (e *Enricher) search(ctx context.Context, query string) ([]Page, []contract.Visit) {
	v := contract.Visit{Kind: contract.VisitSearch, Query: query, At: time.Now()}
	found, err := e.web.Search(ctx, query)
	v.Status, v.Results, v.LatencyMS = statusOf(err == nil && found.Results > 0, found.Cached), found.Results, time.Since(v.At).Milliseconds()
	if err != nil {
		e.log.InfoContext(ctx, "a search gave nothing", slog.Any("error", err))
	}
	pages, visits := fetchAll(ctx, e.web, found.URLs, query)
	for _, p := range found.Pages {
		v.Chars += utf8.RuneCountInString(p.Text)
	}
	return append(pages, found.Pages...), append([]contract.Visit{v}, visits...)
}

// statusOf tells what became of a visit that ended without a fault of the gateway's own.
func statusOf(found, cached bool) contract.VisitStatus {
	switch {
	case !found:
		return contract.VisitFailed
	case cached:
		return contract.VisitCacheHit
	}
	return contract.VisitSuccess
}

package enrich

import (
	"context"
	"errors"
	"time"

	"hydrallm/services/enricher/internal/cache"
	"hydrallm/services/enricher/internal/page"
)

// Kept is a Web that keeps what it got, and has one of many who ask for the same at the same time get it.
type Kept struct {
	Web   Web
	Cache *cache.Cache
	TTL   time.Duration
	Mode  string // how pages are read: what one mode gives is nothing to another
}

// Kinds of what is kept.
const (
	keptPage   = "page"
	keptSearch = "search"
)

var errNoText = errors.New("the page has no text")

// Fetch implements Web.
func (k *Kept) Fetch(ctx context.Context, url, query string) (Page, error) {
	worth := func(d page.Document) bool { return !d.Empty() }
	doc, cached, err := cache.Get(ctx, k.Cache, keptPage, k.Mode+" "+sameAs(url), cache.MaxAge(query, k.TTL), worth, func(ctx context.Context) (page.Document, error) {
		p, err := k.Web.Fetch(ctx, url, query)
		if err == nil && p.Empty() {
			err = errNoText
		}
		return p.Document, err
	})
	return Page{Document: doc, Cached: cached}, err
}

// Search implements Web.
func (k *Kept) Search(ctx context.Context, query string) (Findings, error) {
	worth := func(f Findings) bool { return len(f.Pages) > 0 || len(f.URLs) > 0 }
	found, cached, err := cache.Get(ctx, k.Cache, keptSearch, k.Mode+" "+cache.QueryKey(query), cache.MaxAge(query, k.TTL), worth, func(ctx context.Context) (Findings, error) {
		return k.Web.Search(ctx, query)
	})
	found.Cached = cached
	return found, err
}

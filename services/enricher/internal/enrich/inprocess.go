package enrich

import (
	"context"

	"hydrallm/services/enricher/internal/page"
	"hydrallm/services/enricher/internal/search"
)

// Reader reads a page. One without text is an error.
type Reader interface {
	Read(ctx context.Context, url string) (page.Document, error)
}

// Searcher asks search engines.
type Searcher interface {
	Search(ctx context.Context, query string) ([]search.Result, error)
}

// readResults is how many results of a search are read.
const readResults = 3

// InProcess fetches and searches in this process.
type InProcess struct {
	Reader   Reader
	Searcher Searcher
}

// Fetch implements Web.
func (w *InProcess) Fetch(ctx context.Context, url, _ string) (Page, error) {
	doc, err := w.Reader.Read(ctx, url)
	return Page{Document: doc}, err
}

// Search implements Web.
func (w *InProcess) Search(ctx context.Context, query string) (Findings, error) {
	results, err := w.Searcher.Search(ctx, query)
	if err != nil {
		return Findings{}, err
	}
	found := Findings{Results: len(results)}
	for _, r := range results[:min(len(results), readResults)] {
		found.URLs = append(found.URLs, r.URL)
	}
	return found, nil
}

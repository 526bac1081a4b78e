package enrich

import (
	"context"

	"hydrallm/services/enricher/internal/intent"
	"hydrallm/services/enricher/internal/page"
)

// Web fetches and searches: in this process, or by a server. What it is given comes from strangers, and so does what it gives. Each of it is the
// caller's to use, but not to change: others may have got the same.
type Web interface {
	// Fetch reads one page, for what query asks. A page without text is an error.
	Fetch(ctx context.Context, url, query string) (Page, error)
	// Search searches. No results are no error.
	Search(ctx context.Context, query string) (Findings, error)
}

// Page is a page that was read.
type Page struct {
	page.Document
	Asked  string `json:"-"` // its address as it was asked for
	Cached bool   `json:"-"` // it was kept from before
}

// Findings are what a search gave.
type Findings struct {
	Results int      // that were found
	URLs    []string // of the best, which are still to be read
	Pages   []Page   // that were read by who searched
	Cached  bool     `json:"-"`
}

// Classifier tells whether a text of a user needs the web.
type Classifier interface {
	NeedsWeb(ctx context.Context, text string) intent.Verdict
}

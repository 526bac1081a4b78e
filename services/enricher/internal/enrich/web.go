package enrich

import (
	"context"
	"time"

	"hydrallm/services/enricher/internal/intent"
	"hydrallm/services/enricher/internal/page"
	"hydrallm/shared/contract"
)

// Web fetches and searches: in this process, or by a server. What it is given comes from strangers, and so does what it gives.
type Web interface {
	// Fetch reads one page. A page without text is an error.
	Fetch(ctx context.Context, url string) (Page, error)
	// Search searches and reads the pages of the best results. When the time of ctx is over it gives what it has by then. No results are no error.
	Search(ctx context.Context, query string) (Findings, error)
}

// Page is a page that was read.
type Page struct {
	page.Document
	Cached bool // it was kept from before
}

// Findings are what a search gave.
type Findings struct {
	Results int    // that the engine named
	Pages   []Page // that could be read, in the order of the results
	Cached  bool
	Visits  []Visit // to the pages of results
}

// Classifier tells whether a text of a user needs the web.
type Classifier interface {
	NeedsWeb(ctx context.Context, text string) intent.Verdict
}

// Observer is told what was done for a request, in the order in which it was begun. It must not wait.
type Observer interface {
	Observe(r *contract.Request, visits []Visit)
}

// Kind says what a visit was for.
type Kind string

// Kinds of visits.
const (
	KindFetch  Kind = "fetch"
	KindSearch Kind = "search"
)

// Status says what became of a visit.
type Status string

// Statuses of visits.
const (
	StatusCacheHit Status = "cache_hit"
	StatusSuccess  Status = "success"
	StatusFailed   Status = "failed" // nothing was found, could be read, or may be read
	StatusError    Status = "error"  // of the gateway's own
)

// Visit is one fetch or search.
type Visit struct {
	Kind    Kind
	URL     string // of a fetch, as it was asked for
	Query   string // that was searched for, or for which the page was read
	Status  Status
	Text    string // of the page; "" = none
	Results int    // of a search
	Began   time.Time
	Latency time.Duration
}

// statusOf tells what became of a visit that ended without a fault of the gateway's own.
func statusOf(found, cached bool) Status {
	switch {
	case !found:
		return StatusFailed
	case cached:
		return StatusCacheHit
	}
	return StatusSuccess
}

package query

import "time"

// Enricher is the service that adds text from the web to requests.
const Enricher = "enricher"

// Operations of the enricher.
var (
	// GetKeywords gives the keywords that make a question one for the web; GET /v1/admin/intent/keywords.
	GetKeywords = Op[None, Keywords]{Enricher, "keywords", 10 * time.Second}
	// AddKeywords adds keywords of one language, for all enrichers and for good; POST /v1/admin/intent/keywords.
	AddKeywords = Op[NewKeywords, KeywordsAdded]{Enricher, "add_keywords", 10 * time.Second}
	// LearnKeywords takes keywords from a question that should have been one for the web; POST /v1/admin/intent/keywords/learn.
	LearnKeywords = Op[Missed, Learned]{Enricher, "learn_keywords", time.Minute}
)

// Keywords are those of each language, the oldest first.
type Keywords struct {
	Korean  []string `json:"ko"`
	English []string `json:"en"`
}

// NewKeywords are keywords to add. Those that are too short, too long or known are left out.
type NewKeywords struct {
	Lang     string   `json:"lang"` // "ko" or "en"
	Keywords []string `json:"keywords"`
}

// KeywordsAdded tells which keywords were really new.
type KeywordsAdded struct {
	Status string   `json:"status"` // Success
	Lang   string   `json:"lang"`
	Added  []string `json:"added"`
}

// Missed is a question that should have been one for the web.
type Missed struct {
	Query string `json:"query"`
}

// Learned tells which keywords a question brought.
type Learned struct {
	Status string   `json:"status"` // Success
	Query  string   `json:"query"`
	Added  []string `json:"added"`
}

package contract

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"hydrallm/shared/openai/rawjson"
)

// WebRecord is the fact of what one delivery of a request fetched and searched. Request and delivery name it.
type WebRecord struct {
	RequestID string  `json:"request_id"`
	SessionID string  `json:"session_id,omitempty"`
	Delivery  uint64  `json:"delivery"`
	Visits    []Visit `json:"visits"` // in order
}

// Visit is one page that was asked for, or one search.
type Visit struct {
	Kind      VisitKind   `json:"kind"`
	URL       string      `json:"url,omitempty"`   // of a page, as it was asked for
	Query     string      `json:"query,omitempty"` // of a search, or of the search that found the page
	Title     string      `json:"title,omitempty"` // of the page
	Status    VisitStatus `json:"status"`
	Results   int         `json:"results,omitempty"` // of a search
	Chars     int         `json:"chars,omitempty"`   // of the text that was read, in code points
	Summary   string      `json:"summary,omitempty"` // begin of the text, SummaryRunes at most
	Content   string      `json:"content,omitempty"` // what of the page went into the prompt
	LatencyMS int64       `json:"latency_ms"`
	At        time.Time   `json:"at"`
}

// VisitKind is the type of the part that tells of a visit.
type VisitKind string

// Kinds of visits.
const (
	VisitFetch  VisitKind = "web_fetch"
	VisitSearch VisitKind = "web_search"
)

// VisitStatus is what became of a visit.
type VisitStatus string

// Statuses of visits. Why something failed is not told: it could tell of the internal network.
const (
	VisitCacheHit VisitStatus = "cache_hit" // it was read before
	VisitSuccess  VisitStatus = "success"
	VisitFailed   VisitStatus = "failed" // there is nothing to read, or it may not be read
	VisitError    VisitStatus = "error"  // it could not be found out
)

// Known says whether this version knows the status.
func (s VisitStatus) Known() bool {
	switch s {
	case VisitCacheHit, VisitSuccess, VisitFailed, VisitError:
		return true
	}
	return false
}

// SummaryRunes is the most that metrics keep of a text.
const SummaryRunes = 200

// Summarise gives the begin of a text in one line, SummaryRunes long at most.
func Summarise(text string) string {
	var b strings.Builder
	n := 0
	for field := range strings.FieldsSeq(text) {
		if n > 0 {
			if n++; n >= SummaryRunes {
				break
			}
			b.WriteByte(' ')
		}
		for _, r := range field {
			if n == SummaryRunes {
				return b.String()
			}
			b.WriteRune(r)
			n++
		}
	}
	return b.String()
}

// charsPerToken turns characters into an estimate of tokens.
const charsPerToken = 4

// AppendPart appends the visit as a part of a message: with what was read for one that is stored, without it for an answer.
func (v *Visit) AppendPart(dst []byte, stored bool) []byte {
	dst = rawjson.AppendString(append(dst, `{"type":`...), string(v.Kind))
	return append(v.AppendPartData(append(dst, `,"data":`...), stored), '}')
}

// AppendPartData appends the data of that part.
func (v *Visit) AppendPartData(dst []byte, stored bool) []byte {
	if v.Kind == VisitSearch {
		dst = rawjson.AppendString(append(dst, `{"query":`...), v.Query)
		dst = rawjson.AppendString(append(dst, `,"status":`...), string(v.Status))
		dst = strconv.AppendInt(append(dst, `,"results_count":`...), int64(v.Results), 10)
		return appendTime(dst, `,"searched_at":"`, v.At)
	}
	dst = rawjson.AppendString(append(dst, `{"url":`...), v.URL)
	dst = rawjson.AppendString(append(dst, `,"status":`...), string(v.Status))
	dst = appendText(dst, "title", v.Title)
	if stored {
		dst = rawjson.AppendString(append(dst, `,"content":`...), v.Content)
	}
	tokens := 0
	if n := utf8.RuneCountInString(v.Content); n > 0 {
		tokens = max(1, n/charsPerToken)
	}
	dst = strconv.AppendInt(append(dst, `,"content_tokens":`...), int64(tokens), 10)
	return appendTime(dst, `,"fetched_at":"`, v.At)
}

func appendTime(dst []byte, name string, at time.Time) []byte {
	return append(at.UTC().AppendFormat(append(dst, name...), time.RFC3339), `"}`...)
}

// WebParts gives visits as the parts that an answer has of them, an array; nil for none.
func WebParts(visits []Visit) []byte {
	var parts []byte
	for i := range visits {
		if i == 0 {
			parts = append(parts, '[')
		} else {
			parts = append(parts, ',')
		}
		parts = visits[i].AppendPart(parts, false)
	}
	if parts != nil {
		parts = append(parts, ']')
	}
	return parts
}

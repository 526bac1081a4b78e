package contract_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// metrics keep the begin of a text, in whole characters and one line.
func TestSummarise(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "",
		"  \n\t ":                        "",
		" a  b\n\nc ":                    "a b c",
		strings.Repeat("글", 300):         strings.Repeat("글", contract.SummaryRunes),
		strings.Repeat("ab ", 100):       strings.TrimSpace(strings.Repeat("ab ", 67)),
		strings.Repeat("x", 199) + " yz": strings.Repeat("x", 199),
		"a\xffb":                         "a\uFFFDb",
	} {
		got := contract.Summarise(text)
		require.Equal(t, want, got)
		require.LessOrEqual(t, utf8.RuneCountInString(got), contract.SummaryRunes)
	}
}

// an answer has parts without what was read, of which they only tell the size.
func TestWebParts(t *testing.T) {
	t.Parallel()
	require.Nil(t, contract.WebParts(nil))
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.FixedZone("KST", 9*3600))
	visits := []contract.Visit{
		{Kind: contract.VisitSearch, Query: `a "b"`, Status: contract.VisitFailed, At: at},
		{Kind: contract.VisitFetch, URL: "https://a.example/?q=<b>", Status: contract.VisitSuccess, Content: "글글", At: at},
		{Kind: contract.VisitFetch, URL: "https://b.example/", Title: "B", Status: contract.VisitFailed, At: at},
	}
	require.JSONEq(t, `[
		{"type":"web_search","data":{"query":"a \"b\"","status":"failed","results_count":0,"searched_at":"2026-03-01T00:00:00Z"}},
		{"type":"web_fetch","data":{"url":"https://a.example/?q=<b>","status":"success","content_tokens":1,"fetched_at":"2026-03-01T00:00:00Z"}},
		{"type":"web_fetch","data":{"url":"https://b.example/","title":"B","status":"failed","content_tokens":0,"fetched_at":"2026-03-01T00:00:00Z"}}
	]`, string(contract.WebParts(visits)))
	require.True(t, json.Valid(visits[1].AppendPart(nil, true)))
	require.Contains(t, string(visits[1].AppendPart(nil, true)), `"content":"글글"`)
}

package search

import (
	"html"
	"net/url"
	"strings"
	"unicode"
)

const (
	maxTitle   = 200  // characters
	maxSnippet = 500  // characters
	maxURL     = 2048 // bytes
)

// tidy gives the results that can be read: web addresses that are not unwanted, each once, with texts of one line.
func tidy(found []Result, unwanted func(*url.URL) bool) []Result {
	var kept []Result
	seen := map[string]bool{}
	for _, r := range found {
		u, err := url.Parse(strings.TrimSpace(r.URL))
		if err != nil || len(r.URL) > maxURL || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || unwanted(u) {
			continue
		}
		u.Host = strings.ToLower(u.Host)
		u.Fragment, u.RawFragment = "", ""
		key := strings.TrimPrefix(u.Host, "www.") + strings.TrimRight(u.EscapedPath(), "/") + "?" + u.RawQuery
		if seen[key] {
			continue
		}
		seen[key] = true
		kept = append(kept, Result{Title: shorten(r.Title, maxTitle), URL: u.String(), Snippet: shorten(r.Snippet, maxSnippet)})
		if len(kept) == maxResults {
			break
		}
	}
	return kept
}

// shorten makes one line of a text, with at most n characters; an ellipsis stands for what was cut off.
func shorten(text string, n int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if runes := []rune(text); len(runes) > n {
		return strings.TrimSpace(string(runes[:n-1])) + "…"
	}
	return text
}

// unescape gives the text of JSON that an engine took from HTML.
func unescape(text string) string { return html.UnescapeString(text) }

// within says whether host is domain or below it.
func within(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}

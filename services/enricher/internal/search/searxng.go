package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// searxng is a server of SearXNG, asked for JSON.
type searxng struct{ base string }

func (e searxng) request(ctx context.Context, q query) (*http.Request, error) {
	return get(ctx, e.base+"/search", map[string]string{"q": q.text, "format": "json", "categories": "general", "language": q.lang.code})
}

func (searxng) read(a answer) ([]Result, error) {
	switch a.status {
	case http.StatusForbidden:
		return nil, errors.New("it gives no JSON: json has to be in search.formats of its settings.yml (status 403)")
	case http.StatusTooManyRequests:
		return nil, errors.New("its limiter refused the search (status 429)")
	}
	if err := a.refusal(); err != nil {
		return nil, err
	}
	var page struct {
		Results *[]struct {
			URL, Title, Content string
		}
		Unresponsive []any `json:"unresponsive_engines"`
	}
	if err := json.Unmarshal(a.body, &page); err != nil {
		return nil, fmt.Errorf("%w: %w", errStrange, err)
	}
	if page.Results == nil {
		return nil, errStrange
	}
	found := make([]Result, len(*page.Results))
	for i, r := range *page.Results {
		found[i] = Result{Title: unescape(r.Title), URL: r.URL, Snippet: unescape(r.Content)}
	}
	if len(found) == 0 && len(page.Unresponsive) > 0 {
		return nil, fmt.Errorf("none of its engines has results: %s", reasons(page.Unresponsive))
	}
	return found, nil
}

// reasons names engines that gave nothing, as SearXNG has them: pairs of a name and a reason.
func reasons(pairs []any) string {
	var names []string
	for _, p := range pairs[:min(len(pairs), 5)] {
		names = append(names, shorten(fmt.Sprint(p), 60))
	}
	return strings.Join(names, ", ")
}

func (searxng) own(string) bool { return false }

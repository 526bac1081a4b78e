package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// openserp is a server of OpenSERP, which asks another engine.
type openserp struct{ base, engine string }

func (e openserp) request(ctx context.Context, q query) (*http.Request, error) {
	return get(ctx, e.base+"/"+url.PathEscape(strings.ToLower(e.engine))+"/search", map[string]string{
		"text": q.text, "limit": strconv.Itoa(maxResults), "lang": strings.ToUpper(q.lang.code), "region": q.lang.region, "format": "json",
	})
}

// serpResult is a result in either version.
type serpResult struct {
	URL, Title  string
	Snippet     string // version 2
	Description string // version 1
	Type        string // version 2; organic, or something that is no page
	Ad          bool   // version 1
}

func (openserp) read(a answer) ([]Result, error) {
	var page struct {
		Results []serpResult
		Error   string
		Meta    struct {
			Failed []any `json:"engines_failed"`
		}
	}
	var err error
	if body := bytes.TrimLeft(a.body, " \t\r\n"); len(body) > 0 && body[0] == '[' { // version 1
		err = json.Unmarshal(body, &page.Results)
	} else {
		err = json.Unmarshal(body, &page)
	}
	switch blocked := page.Error == "captcha_detected" || page.Error == "blocked"; {
	case err == nil && blocked:
		return nil, fmt.Errorf("%w (%s)", errChallenge, page.Error)
	case err == nil && page.Error != "":
		return nil, fmt.Errorf("it answered with status %d: %s", a.status, shorten(page.Error, 60))
	case a.status != http.StatusOK:
		return nil, fmt.Errorf("it answered with status %d", a.status)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errStrange, err)
	}
	found := []Result{}
	for _, r := range slices.DeleteFunc(page.Results, func(r serpResult) bool { return r.Ad || r.Type != "" && r.Type != "organic" }) {
		found = append(found, Result{Title: unescape(r.Title), URL: r.URL, Snippet: unescape(r.Snippet + r.Description)})
	}
	if len(found) == 0 && len(page.Meta.Failed) > 0 {
		return nil, fmt.Errorf("its engines failed: %s", reasons(page.Meta.Failed))
	}
	return found, nil
}

func (openserp) own(string) bool { return false }

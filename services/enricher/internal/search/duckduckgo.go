package search

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// duckduckgo is DuckDuckGo's page for browsers without scripts.
type duckduckgo struct{ base string }

var duckduckgoMarkup = markup{
	challenge: "form#challenge-form, .anomaly-modal__title", wall: []string{"bots use duckduckgo too"}, frame: "#links, .no-results",
	item: "#links .result", ad: ".result--ad", link: "h2 a[href], a.result__a[href]", snippet: ".result__snippet", noise: "script, style",
}

func (e duckduckgo) request(ctx context.Context, q query) (*http.Request, error) {
	region := "wt-wt" // none
	if q.lang.code != "" {
		region = strings.ToLower(q.lang.region + "-" + q.lang.code)
	}
	if q.lang.code == "ko" {
		region = "kr-kr" // its name for the only region with Korean
	}
	form := url.Values{"q": {q.text}, "b": {""}, "kl": {region}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.base+"/html/", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	asBrowser(r, e.base+"/html/")
	return r, nil
}

func (e duckduckgo) read(a answer) ([]Result, error) {
	if a.status == http.StatusSeeOther { // its way to say that there is nothing
		return nil, nil
	}
	return duckduckgoMarkup.read(a, func(href string) string { return e.unwrap(a.url, href) })
}

// unwrap gives the address in a link that leads over DuckDuckGo.
func (e duckduckgo) unwrap(page *url.URL, href string) string {
	u, err := page.Parse(strings.TrimSpace(href))
	if err != nil || href == "" {
		return ""
	}
	if u.Host != page.Host && !e.own(strings.ToLower(u.Hostname())) {
		return u.String()
	}
	return u.Query().Get("uddg")
}

func (duckduckgo) own(host string) bool { return within(host, "duckduckgo.com") }

package search

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
)

// bing is Bing's page for browsers.
type bing struct{ base string }

var bingMarkup = markup{
	challenge: "div.captcha, #b_captcha, form#challenge-form", wall: []string{"verify that you are not a robot", "one last step"}, frame: "#b_results, .b_no",
	item: "#b_results > li.b_algo", ad: ".b_ad, .b_adTop, .b_adBottom", link: "h2 a[href]", snippet: ".b_caption p, .b_lineclamp2, .b_lineclamp3, .b_lineclamp4",
	noise: ".algoSlug_icon, script, style",
}

func (e bing) request(ctx context.Context, q query) (*http.Request, error) {
	r, err := get(ctx, e.base+"/search", map[string]string{"q": q.text, "mkt": q.lang.tag(), "setlang": q.lang.code})
	if err != nil {
		return nil, err
	}
	asBrowser(r, e.base+"/")
	return r, nil
}

func (e bing) read(a answer) ([]Result, error) {
	return bingMarkup.read(a, func(href string) string { return e.unwrap(a.url, href) })
}

// unwrap gives the address in a link that leads over Bing: behind "a1", in the URL alphabet of base64.
func (e bing) unwrap(page *url.URL, href string) string {
	u, err := page.Parse(strings.TrimSpace(href))
	if err != nil || href == "" {
		return ""
	}
	if u.Host != page.Host && !e.own(strings.ToLower(u.Hostname())) {
		return u.String()
	}
	coded, ok := strings.CutPrefix(u.Query().Get("u"), "a1")
	if !ok {
		return ""
	}
	target, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(coded, "="))
	if err != nil {
		return ""
	}
	return string(target)
}

func (bing) own(host string) bool { return within(host, "bing.com") }

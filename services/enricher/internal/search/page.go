package search

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/PuerkitoBio/goquery"
)

// errStrange says that a page has neither results nor a place for them.
var errStrange = errors.New("its page is not understood")

// markup says where a page of an engine has what. All but item, link and frame may be empty.
type markup struct {
	challenge string   // there when the engine wants proof that a person asks
	wall      []string // words of such a page in lower case, if it has no results
	frame     string   // what holds the results, also when there are none
	item      string   // one result
	ad        string   // an item that is an advertisement
	link      string   // the link within an item
	snippet   string   // the text within an item
	noise     string   // what does not belong to the text
}

// read gives the results of a page in their order. unwrap gives the address behind a link, "" for one that leads to no page.
func (m markup) read(a answer, unwrap func(href string) string) ([]Result, error) {
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(a.body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errStrange, err)
	}
	if doc.Find(m.challenge).Length() > 0 {
		return nil, errChallenge
	}
	if err := a.refusal(); err != nil {
		return nil, err
	}
	items := doc.Find(m.item)
	if items.Length() == 0 {
		return nil, m.none(doc)
	}
	var found []Result
	for _, item := range items.EachIter() {
		if item.Is(m.ad) {
			continue
		}
		link := item.Find(m.link).First()
		if href := unwrap(link.AttrOr("href", "")); href != "" {
			text := item.Find(m.snippet).First()
			text.Find(m.noise).Remove()
			found = append(found, Result{Title: link.Text(), URL: href, Snippet: text.Text()})
		}
	}
	return found, nil
}

// none says why a page has no results, nil if there are just none.
func (m markup) none(doc *goquery.Document) error {
	text := strings.ToLower(doc.Text())
	for _, words := range m.wall {
		if strings.Contains(text, words) {
			return errChallenge
		}
	}
	if doc.Find(m.frame).Length() == 0 {
		return errStrange
	}
	return nil
}

// asBrowser gives a request the headers that a browser sends when somebody searches on the engine's own page.
func asBrowser(r *http.Request, referer string) {
	for key, value := range map[string]string{
		"User-Agent": browserAgent, "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Referer": referer,
		"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-User": "?1",
	} {
		r.Header.Set(key, value)
	}
}

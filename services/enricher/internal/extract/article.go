package extract

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/markusmobius/go-trafilatura"
	"golang.org/x/net/html"

	"hydrallm/services/enricher/internal/page"
)

// readHTML keeps the main content of a page as Markdown. Where no tree can be made of it, or nothing of it seems to be content, it is the whole text.
func readHTML(doc *page.Document, text string) {
	s := scan(text, doc.URL)
	doc.Title = s.heading()
	doc.Text = s.plain
	shown := s.plain
	if body, err := parse(s.markup); err == nil {
		prune(body, s.unseen)
		if md, all := content(body, s); strings.TrimSpace(md) != "" {
			doc.Text, shown = md, all
		}
	}
	doc.Text = withoutTitle(doc.Text, doc.Title)
	doc.Published = published(s, shown)
}

// fragment makes Markdown of HTML inside of something else, all of it.
func fragment(text, base string) string {
	s := scan(text, base)
	body, err := parse(s.markup)
	if err != nil {
		return s.plain
	}
	prune(body, nil)
	return markdown(body, s.base)
}

// heading is the title of a page: the one that it tells others, else the one of its window without the name of the site.
func (s *scanned) heading() string {
	for _, name := range []string{"og:title", "twitter:title"} {
		if title := strings.TrimSpace(html.UnescapeString(s.metas[name])); title != "" {
			return title
		}
	}
	title := strings.Join(strings.Fields(s.title), " ")
	if site := s.metas["og:site_name"]; site != "" {
		for _, sep := range []string{" - ", " | ", " – ", " — ", " :: ", " : "} {
			title = strings.TrimSuffix(title, sep+site)
		}
	}
	if title == "" {
		title = s.first
	}
	return title
}

// parse builds the tree of a scanned page and gives its body.
func parse(markup string) (body *html.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("parsing: %v", r)
		}
	}()
	root, err := html.Parse(strings.NewReader(markup))
	if err != nil {
		return nil, err
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "body" {
			return n, nil
		}
	}
	return nil, errors.New("no body")
}

// content finds the part of a page that it is about. The extractor says where it is; what it says of single paragraphs, lists and tables counts less,
// because it takes structure apart: within that part all is kept that does not look like furniture.
//
// It gives the Markdown of it, and the text of the part as it was.
func content(body *html.Node, s *scanned) (md, shown string) {
	chosen := choose(body, s.base)
	region := body
	if chosen.total > 0 {
		region = chosen.region(body)
	}
	shown = plain(region)
	size, _ := measure(region)
	chosen.clear(region, size)
	return markdown(region, s.base), shown
}

// choice is which text of a page the extractor takes for content.
type choice struct {
	texts map[string]bool
	total int
}

// choose asks the extractor. One that fails or panics has chosen nothing.
func choose(body *html.Node, base *url.URL) (c choice) {
	c.texts = map[string]bool{}
	defer func() {
		if recover() != nil {
			c = choice{texts: map[string]bool{}}
		}
	}()
	root := &html.Node{Type: html.DocumentNode}
	top := &html.Node{Type: html.ElementNode, Data: "html"}
	root.AppendChild(top)
	top.AppendChild(clone(body))
	result, err := trafilatura.ExtractDocument(root, trafilatura.Options{
		OriginalURL: base, ExcludeComments: true, IncludeLinks: true, HtmlDateMode: trafilatura.Disabled, EnableFallback: true,
	})
	if err != nil || result.ContentNode == nil {
		return c
	}
	for n := range result.ContentNode.Descendants() {
		if text := squeeze(n); text != "" {
			c.texts[text] = true
		}
	}
	for n := range body.Descendants() {
		c.total += c.weight(n)
	}
	return c
}

// weight is how much text of a node is chosen, 0 for what is no text.
func (c choice) weight(n *html.Node) int {
	if text := squeeze(n); text != "" && c.texts[text] {
		return len(text)
	}
	return 0
}

// squeeze gives the words of a text node.
func squeeze(n *html.Node) string {
	if n.Type != html.TextNode {
		return ""
	}
	return strings.Join(strings.Fields(n.Data), " ")
}

func clone(n *html.Node) *html.Node {
	c := &html.Node{Type: n.Type, DataAtom: n.DataAtom, Data: n.Data, Attr: append([]html.Attribute(nil), n.Attr...)}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		c.AppendChild(clone(child))
	}
	return c
}

// region gives the smallest element that has nearly all of the chosen text, or one around it whose other children are content just as well, as the
// answers are to a question.
func (c choice) region(body *html.Node) *html.Node {
	weights := map[*html.Node]int{}
	var sum func(n *html.Node) int
	sum = func(n *html.Node) int {
		w := c.weight(n)
		for child := range n.ChildNodes() {
			w += sum(child)
		}
		weights[n] = w
		return w
	}
	sum(body)
	at := body
	for deeper := true; deeper; {
		deeper = false
		for child := range at.ChildNodes() {
			if child.Type == html.ElementNode && weights[child]*10 >= c.total*9 {
				at, deeper = child, true
				break
			}
		}
	}
	for at != body && (inText(at) || prose(at.Parent, at)*5 >= prose(at, nil)) {
		at = at.Parent
	}
	size, _ := measure(at)
	for up := at; up != body; up = up.Parent {
		// What the page itself declares to be its content is, unless there is much else in it.
		if text, linked := measure(up); (up.Data == "article" || up.Data == "main" || get(up, "role") == "main") && text-linked < 2*size {
			at = up
		}
	}
	if at.Data == "td" {
		at.Data, at.DataAtom = "div", 0
	}
	return at
}

// prose is the size of what reads like text below n, without the child except: paragraphs of some length that are no links and no furniture.
func prose(n, except *html.Node) int {
	if n == nil || n == except || n.Type == html.ElementNode && furniture(n) {
		return 0
	}
	if n.Type == html.ElementNode && isBlock(n) && !hasBlock(n) {
		text, linked := measure(n)
		if text < 60 || linked*2 > text {
			return 0
		}
		return text
	}
	sum := 0
	for child := range n.ChildNodes() {
		sum += prose(child, except)
	}
	return sum
}

// clear removes what looks like furniture within the content, unless the extractor chose most of it. Lists of nothing but links are removed anyway where
// the content, of which size is the bytes, has more than them.
func (c choice) clear(n *html.Node, size int) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		if child.Type == html.ElementNode && (isBlock(child) || child.Data == "span") {
			list := linkList(child)
			text, _ := measure(child)
			if (furniture(child) || list) && !c.mostly(child) || list && purely(child) && text*2 < size {
				n.RemoveChild(child)
			} else {
				c.clear(child, size)
			}
		}
		child = next
	}
}

// mostly says whether more than half of the text of n is chosen.
func (c choice) mostly(n *html.Node) bool {
	chosen, all := 0, 0
	for d := range n.Descendants() {
		chosen += c.weight(d)
		all += len(squeeze(d))
	}
	return chosen*2 > all
}

// withoutTitle takes off a line near the beginning that repeats the title, as a heading or otherwise.
func withoutTitle(md, title string) string {
	title = squash(title)
	rest, before := strings.TrimLeft(md, " \n"), 0
	for n := 0; n < 5 && rest != ""; n++ {
		line, after, _ := strings.Cut(rest, "\n")
		bare := squash(linkText.ReplaceAllString(strings.Trim(line, "#* "), "$1"))
		if (len(bare)*2 >= len(title) || strings.HasPrefix(line, "# ")) && strings.Contains(title, bare) && bare != "" {
			return strings.TrimLeft(md, " \n")[:before] + after
		}
		before += len(rest) - len(after)
		rest = after
	}
	return md
}

var linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

func squash(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), "")) }

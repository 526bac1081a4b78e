package extract

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// What is never content, whoever says so.
var removed = set("svg noscript template button select option input label legend textarea dialog menu")

// removedRoles are the landmarks of ARIA that are not the content.
var removedRoles = set("navigation banner contentinfo search dialog alertdialog menu menubar toolbar tablist tooltip")

var (
	// furnitureName matches classes and ids of parts that surround the content of pages. Words are matched whole.
	furnitureName = regexp.MustCompile(`(?i)(?:^|[\s_-])(?:nav|navbar|navigation|gnb|lnb|snb|menu|megamenu|breadcrumbs?|sidebar|side|aside|rail|footer|foot|masthead|` +
		`cookies?|consent|gdpr|banners?|popup|modal|overlay|toast|newsletter|subscribe|subscription|paywall|signup|login|share|sharing|sns|social|follow|` +
		`related|recommend(?:ed|ations?)?|recirc|trending|popular|ranking|most-?read|more-news|also-like|ads?|advert(?:isement)?s?|adsbygoogle|promo|sponsor(?:ed)?|` +
		`toolbar|pagination|pager|paging|skip(?:-?link)?|copyright|widgets?|tags|tag-list|hot-?topics|author-?bio|byline-card|edit-?section|editsection|toc|catlinks|navbox|` +
		`vote|votes|voting|score-box|stats-bar|gutter|lineno|line-?numbers|linenos|rouge-gutter|printfooter|print-only|sr-only|visually-hidden|screen-reader(?:-text)?|a11y|blind)(?:$|[\s_-])`)
	commentName = regexp.MustCompile(`(?i)(?:^|[\s_-])(?:comments?|comment-?list|commentlist|comment-?area|disqus(?:_thread)?|replies|reply-?list|cmt|u_cbox|livere|respond)(?:$|[\s_-])`)
	contentName = regexp.MustCompile(`(?i)(?:^|[\s_-])(?:article-?(?:body|content|view)?|post-?(?:body|content)|entry-?content|main-?content|content-?body|answers?|prose|markdown-?body)(?:$|[\s_-])`)
)

// commentShare: a page whose text is this many times shorter without its comments consists of them, as a thread of a forum does.
const commentShare = 3

// prune removes from a tree what is not shown, and what is no content on any page. Comments are removed where there is something besides them.
func prune(body *html.Node, unseen []string) {
	var comments []*html.Node
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		for child := n.FirstChild; child != nil; {
			next := child.NextSibling
			switch {
			case child.Type == html.CommentNode || child.Type == html.DoctypeNode:
				n.RemoveChild(child)
			case child.Type != html.ElementNode:
			case removed[child.Data] || has(child, "hidden") || notShown(child, unseen) || removedRoles[get(child, "role")]:
				n.RemoveChild(child)
			default:
				if isComments(child) {
					comments = append(comments, child)
				}
				walk(child)
			}
			child = next
		}
	}
	walk(body)
	inComments := 0
	for _, n := range comments {
		text, _ := measure(n)
		inComments += text
	}
	all, _ := measure(body)
	if all-inComments < 200 || (all-inComments)*commentShare < all {
		return
	}
	for _, n := range comments {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
}

// notShown says whether a style of the page hides an element. The frames of the whole page are excepted: scripts show them later.
func notShown(n *html.Node, unseen []string) bool {
	if len(unseen) == 0 || n.Data == "main" || n.Data == "article" {
		return false
	}
	if id := get(n, "id"); id != "" && slices.Contains(unseen, "#"+id) {
		return true
	}
	for class := range strings.FieldsSeq(get(n, "class")) {
		if slices.Contains(unseen, "."+class) {
			return true
		}
	}
	return false
}

func isComments(n *html.Node) bool {
	switch n.Data {
	case "div", "section", "ul", "ol", "aside", "article", "table", "li":
		return commentName.MatchString(get(n, "class")+" "+get(n, "id")) || strings.HasSuffix(get(n, "itemtype"), "schema.org/Comment")
	}
	return false
}

// furniture says whether an element is a part of a page around its content, by what it is and is called.
func furniture(n *html.Node) bool {
	switch n.Data {
	case "nav", "footer", "aside":
		return true
	case "header", "h1", "h2", "h3", "h4", "h5", "h6", "p", "pre", "blockquote", "main", "tr", "tbody", "thead", "body":
		return false
	}
	name := get(n, "class") + " " + get(n, "id")
	if contentName.MatchString(name) {
		return false
	}
	return furnitureName.MatchString(name)
}

// linkList says whether an element is a list or box of links to elsewhere.
func linkList(n *html.Node) bool {
	switch n.Data {
	case "ul", "ol", "div", "section", "table", "header":
	default:
		return false
	}
	text, linked := measure(n)
	links := 0
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == "a" {
			links++
		}
	}
	return links >= 3 && linked*10 > text*8
}

// measure gives the bytes of the words below n, and how many of them are links.
func measure(n *html.Node) (text, linked int) {
	if n.Type == html.TextNode {
		return len(squeeze(n)), 0
	}
	for child := range n.ChildNodes() {
		t, l := measure(child)
		text += t
		if child.Type == html.ElementNode && child.Data == "a" {
			l = t
		}
		linked += l
	}
	return text, linked
}

func isBlock(n *html.Node) bool { return !inline[n.Data] }

func hasBlock(n *html.Node) bool {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && isBlock(d) && d.Data != "br" {
			return true
		}
	}
	return false
}

// inText says whether an element is a part of a text, not one that holds a text.
func inText(n *html.Node) bool {
	switch n.Data {
	case "article", "main", "section", "div", "body", "td", "table":
		return false
	}
	return true
}

func get(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

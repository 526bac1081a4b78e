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
	// furnitureName matches classes and ids of parts that surround the content of pages. Words are matched whole, in any style of joining them.
	furnitureName = regexp.MustCompile(`(?i)(?:^|[\s_-])(?:nav|navbar|navigation|gnb|lnb|snb|(?:top|main|sub|side)?[-_]?menu|megamenu|breadcrumbs?|sidebar|side|aside|rail|footer|foot|` +
		`masthead|banners?|popup|modal|overlay|toast|newsletter|subscribe|subscription|paywall|signup|login|share|sharing|sharedaddy|sns|social|follow|` +
		`related?|recommend(?:ed|ations?)?|recirc|similar|trending|popular|ranking|most[-_]?read|more-news|also-like|ads?|adsense|adsbygoogle|advert(?:isement)?s?|revenue|promo|` +
		`sponsor(?:s|ed)?|toolbar|pagination|pager|paging|skip(?:[-_]?(?:link|nav))?|copyright|widgets?|tags|taglist|tag[-_]?(?:list|trail)|hot[-_]?topics|byline|byline-card|` +
		`(?:post|entry|article)[-_]?(?:meta|info)|subtext|edit[-_]?section|toc|catlinks|navbox|satisfaction|feedback|cta|` +
		`vote|votes|voting|votecell|score-box|stats-bar|gutter|lineno|line[-_]?numbers?(?:-(?:wrapper|rows))?(?:$|\s)|linenos|printfooter|print-only|sr-only|visually-hidden|screen-reader|a11y|blind|attachments?)(?:$|[\s_-])`)
	// neverName matches those that are no content on any page, even if the extractor takes them for it.
	neverName = regexp.MustCompile(`(?i)(?:^|[\s_-])(?:post[-_]?profile|user[-_]?(?:info|card|profile)|author[-_]?(?:box|card|bio)|edit[-_]?section|adsense|adsbygoogle|advert(?:isement)?s?|revenue|` +
		`newsletter|subscribe|share|sharing|sharedaddy|sns|breadcrumbs?|pagination|pager|paging|toolbar|copyright|related|recommend(?:ed|ations?)?|most[-_]?read|votecell|voting|` +
		`gutter|lineno|line[-_]?numbers?(?:-(?:wrapper|rows))?(?:$|\s)|linenos|sr-only|visually-hidden|catlinks|navbox|satisfaction|skip[-_]?(?:link|nav)?)(?:$|[\s_-])`)
	// consentName matches requests for consent, which may be longer than the page below them.
	consentName = regexp.MustCompile(`(?i)(?:^|[\s_-])(?:cookies?|consent|gdpr|onetrust|cmp)(?:$|[\s_-])`)
	commentName = regexp.MustCompile(`(?i)(?:^|[\s_-])(?:comments?|comment[-_]?(?:list|area|box|section)|commentlist|disqus|replies|reply|reply[-_]?(?:list|area|box)|reviews|review[-_]?(?:list|area)|cmt|bo[-_]?vc|cbox|livere|respond)(?:$|[\s_-])`)
	contentName = regexp.MustCompile(`(?i)(?:^|[\s_-])(?:article[-_]?(?:body|content|view)?|post[-_]?(?:body|content)|entry[-_]?content|main[-_]?content|content[-_]?body|answers?|prose|markdown[-_]?body)(?:$|[\s_-])`)
	camel       = regexp.MustCompile(`([a-z])([A-Z])`)
)

// commentShare: a page whose text is this many times shorter without its comments consists of them, as a thread of a forum does.
const commentShare = 3

// prune removes from a tree what is not shown, and what is no content on any page. Comments are removed where there is something besides them.
func prune(body *html.Node, unseen []string) {
	var comments, never []*html.Node
	all, _ := measure(body)
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
				switch name := names(child); {
				case isComments(child):
					comments = append(comments, child)
				case child.Data == "pre" || child.Data == "main" || child.Data == "article" || contentName.MatchString(name):
				case consentName.MatchString(name):
					never = append(never, child)
				case neverName.MatchString(name):
					if text, _ := measure(child); text*2 < all {
						never = append(never, child)
					}
				}
				walk(child)
			}
			child = next
		}
	}
	walk(body)
	drop(body, never, 1000)
	drop(body, comments, commentShare)
}

// drop removes parts of a page unless little would be left: less than 200 bytes, or one in so many.
func drop(body *html.Node, parts []*html.Node, oneIn int) {
	all, _ := measure(body)
	in := 0
	for _, n := range parts {
		if within(n, parts) {
			continue
		}
		text, _ := measure(n)
		in += text
	}
	if all-in < 200 || (all-in)*oneIn < all {
		return
	}
	for _, n := range parts {
		n.Parent.RemoveChild(n)
	}
}

// within says whether one of the parts holds n.
func within(n *html.Node, parts []*html.Node) bool {
	for up := n.Parent; up != nil; up = up.Parent {
		if slices.Contains(parts, up) {
			return true
		}
	}
	return false
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

// names gives the class and id of an element as words.
func names(n *html.Node) string {
	name := get(n, "class") + " " + get(n, "id")
	if len(name) == 1 {
		return ""
	}
	return camel.ReplaceAllString(name, "$1-$2")
}

func isComments(n *html.Node) bool {
	switch n.Data {
	case "div", "section", "ul", "ol", "aside", "article", "table", "li":
		return commentName.MatchString(names(n)) || strings.HasSuffix(get(n, "itemtype"), "schema.org/Comment")
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
	name := names(n)
	if contentName.MatchString(name) {
		return false
	}
	return furnitureName.MatchString(name)
}

// linkList says whether an element is a list or box of links to elsewhere.
func linkList(n *html.Node) bool {
	switch n.Data {
	case "ul", "ol", "div", "section", "table", "header", "p", "center", "dl":
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
	return links >= 3 && linked*10 > text*7
}

// purely says whether next to nothing of an element is no link, as in a menu.
func purely(n *html.Node) bool {
	text, linked := measure(n)
	return linked*10 > text*9
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
	case "article", "main", "section", "div", "body", "td":
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

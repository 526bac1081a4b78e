package extract

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// What is looked at of a page. More tags than most pages have by far, and text for many times what is kept: what comes after is left out.
// The limits bound time and memory for whatever a page holds.
const (
	maxTags      = 20_000
	maxText      = 400 << 10 // bytes; 25,000 characters are kept, and navigation may come first
	maxDepth     = 100       // of elements that need an end tag; deeper ones are dissolved in their parent
	maxNested    = 12        // of lists, quotations and tables in each other
	maxAttrs     = 64        // that are looked at in a tag
	maxAttr      = 2 << 10   // bytes of an attribute
	maxJSONLD    = 256 << 10
	maxStyle     = 512 << 10
	maxMetaCount = 200
)

// scanned is what one pass over the tokens of a page gives.
type scanned struct {
	markup string            // the page again, as HTML that is safe to parse
	plain  string            // its text without tags
	title  string            // of the element title
	metas  map[string]string // content by name, property or itemprop, in lower case; the first one counts
	jsonLD []string
	times  []string // of elements time, those first that say when the page was published
	base   *url.URL // what relative links refer to
	first  string   // the first heading
	unseen []string // ids (#x) and classes (.x) that the style of the page does not show
}

// scanner makes a scanned.
type scanner struct {
	scanned
	out     strings.Builder
	text    strings.Builder
	depth   int
	nested  int
	dropped map[string]int // elements that were dissolved and not ended yet
	bold    map[string]int // open elements of formatting
	svg     int
	size    int // of the text
	inH1    bool
	based   bool // the first base counts
	conceal int  // the depth of the element that is not shown and holds what is read now, 0 = none
	rooted  bool // the body has begun
}

// structural elements are counted as depth: HTML has no rule that ends them by itself.
var structural = set(`div span section article main table ul ol dl blockquote header footer nav aside details form fieldset figure center sub sup q del ins
	mark abbr time cite pre label kbd samp var address hgroup menu dialog button template select figcaption summary`)

// nesting elements cost the writer of Markdown more the deeper they are.
var nesting = set("ul ol dl blockquote table")

// formatting elements are opened again by the parser in each following block when their end is missing, so that each is written once at a time.
var formatting = set("b strong i em code")

var kept = set("a body h1 h2 h3 h4 h5 h6 p br hr li dt dd thead tbody tfoot tr td th caption img option legend")

var keptAttrs = set("id class href src alt title lang datetime itemprop itemtype property rel role colspan rowspan start type content name")

func set(names string) map[string]bool {
	m := make(map[string]bool)
	for n := range strings.FieldsSeq(names) {
		m[n] = true
	}
	return m
}

// scan reads a page once, without building a tree.
func scan(text, pageURL string) *scanned {
	s := &scanner{scanned: scanned{metas: map[string]string{}}, dropped: map[string]int{}, bold: map[string]int{}}
	s.base, _ = url.Parse(pageURL)
	z := html.NewTokenizer(strings.NewReader(text))
	raw := "" // the element whose raw text comes next
	for tags := 0; tags < maxTags && s.size < maxText; {
		switch z.Next() {
		case html.ErrorToken:
			tags = maxTags
		case html.TextToken:
			s.words(raw, z)
		case html.StartTagToken, html.SelfClosingTagToken:
			tags++
			raw = s.start(z)
			continue
		case html.EndTagToken:
			tags++
			name, _ := z.TagName()
			s.end(string(name))
		case html.CommentToken, html.DoctypeToken:
		}
		raw = ""
	}
	s.markup, s.plain = s.out.String(), s.text.String()
	return &s.scanned
}

func (s *scanner) words(raw string, z *html.Tokenizer) {
	switch raw {
	case "script", "iframe", "noembed", "noframes", "noscript", "textarea", "template":
	case "style":
		s.unseen = append(s.unseen, hiddenBy(string(z.Raw()[:min(len(z.Raw()), maxStyle)]))...)
	case "ld+json":
		if b := z.Raw(); len(b) <= maxJSONLD && len(s.jsonLD) < 16 {
			s.jsonLD = append(s.jsonLD, string(b))
		}
	case "title":
		if s.title == "" && s.svg == 0 {
			s.title = string(z.Text())
		}
	default:
		if s.svg > 0 {
			return
		}
		text := string(z.Text())
		text = strings.ToValidUTF8(text[:min(len(text), maxText-s.size)], "")
		s.size += len(text)
		s.out.WriteString(html.EscapeString(text))
		if s.inH1 {
			s.first += text
		}
		if s.conceal == 0 {
			s.text.WriteString(text)
		}
	}
}

// standing gives the element that is written for another one: custom elements are blocks, and inline ones that mean nothing here have only their style.
func standing(name string) string {
	switch {
	case strings.ContainsRune(name, '-'):
		return "div"
	case inline[name] && !kept[name] && !structural[name] && !formatting[name] && name != "wbr" && name != "input":
		return "span"
	}
	return name
}

// start writes a tag and gives the name of the element if what follows is its raw text.
func (s *scanner) start(z *html.Tokenizer) string {
	b, more := z.TagName()
	name := string(b)
	attrs := attributes(z, more)
	switch name {
	case "svg", "math":
		if s.svg++; s.svg == 1 {
			s.out.WriteString("<svg>")
		}
		return ""
	case "script":
		if strings.HasPrefix(attrs["type"], "application/ld+json") {
			return "ld+json"
		}
		return name
	case "style", "iframe", "noembed", "noframes", "noscript", "textarea", "title", "xmp":
		return name
	case "plaintext":
		return "xmp"
	case "meta":
		s.meta(attrs)
		return ""
	case "base":
		if href := attrs["href"]; href != "" && s.base != nil && !s.based {
			s.based = true
			if to, err := s.base.Parse(href); err == nil {
				s.base = to
			}
		}
		return ""
	case "html", "head":
		return ""
	case "body":
		if s.rooted {
			return "" // the parser would add its attributes to those of the first one, at a cost that grows with both
		}
		s.rooted = true
	case "time":
		if strings.Contains(attrs["itemprop"]+attrs["class"], "ublish") || attrs["pubdate"] != "" {
			s.times = append([]string{attrs["datetime"]}, s.times...)
		} else if len(s.times) < 8 {
			s.times = append(s.times, attrs["datetime"])
		}
	}
	if s.svg > 0 && htmlBreaksOut(name) {
		s.svg = 0
		s.out.WriteString("</svg>")
	}
	if s.svg > 0 {
		return ""
	}
	s.gap(name)
	s.inH1 = s.inH1 || name == "h1" && s.first == ""
	name = standing(name)
	switch {
	case formatting[name]:
		if s.bold[name]++; s.bold[name] > 1 {
			return ""
		}
		only := map[string]string{"class": attrs["class"]} // the language of code
		if concealed(attrs) {
			only["hidden"] = ""
		}
		attrs = only
	case structural[name]:
		if s.depth >= maxDepth || nesting[name] && s.nested >= maxNested {
			s.dropped[name]++
			return ""
		}
		if nesting[name] {
			s.nested++
		}
		if s.depth++; s.conceal == 0 && concealed(attrs) {
			s.conceal = s.depth
		}
	case !kept[name]:
		return ""
	}
	s.tag(name, attrs)
	return ""
}

func (s *scanner) end(name string) {
	switch {
	case name == "svg" || name == "math":
		if s.svg = max(0, s.svg-1); s.svg == 0 {
			s.out.WriteString("</svg>")
		}
		return
	case s.svg > 0 || name == "body" || name == "html":
		return
	}
	s.gap(name)
	s.inH1 = s.inH1 && name != "h1"
	name = standing(name)
	switch {
	case formatting[name]:
		if s.bold[name] = max(0, s.bold[name]-1); s.bold[name] > 0 {
			return
		}
	case structural[name]:
		if s.dropped[name] > 0 {
			s.dropped[name]--
			return
		}
		if nesting[name] {
			s.nested = max(0, s.nested-1)
		}
		if s.depth = max(0, s.depth-1); s.depth < s.conceal {
			s.conceal = 0
		}
	case !kept[name]:
		return
	}
	s.out.WriteString("</" + name + ">")
}

// gap separates the words of blocks in the text without tags.
func (s *scanner) gap(name string) {
	switch {
	case name == "td" || name == "th":
		s.text.WriteByte(' ')
	case !inline[name]:
		s.text.WriteByte('\n')
	}
}

func (s *scanner) tag(name string, attrs map[string]string) {
	s.out.WriteString("<" + name)
	if concealed(attrs) {
		s.out.WriteString(" hidden")
	}
	for key := range keptAttrs {
		if v, ok := attrs[key]; ok {
			s.out.WriteString(" " + key + `="` + html.EscapeString(v) + `"`)
		}
	}
	s.out.WriteByte('>')
}

func (s *scanner) meta(attrs map[string]string) {
	for _, by := range []string{"property", "name", "itemprop"} {
		key := strings.ToLower(attrs[by])
		if _, there := s.metas[key]; key != "" && !there && len(s.metas) < maxMetaCount {
			s.metas[key] = attrs["content"]
		}
	}
}

// attributes gives those of a tag by name; of a name that comes twice the first one counts, as in a browser.
func attributes(z *html.Tokenizer, more bool) map[string]string {
	attrs := make(map[string]string)
	for n := 0; more && n < maxAttrs; n++ {
		var key, value []byte
		key, value, more = z.TagAttr()
		if _, there := attrs[string(key)]; !there {
			attrs[string(key)] = strings.ToValidUTF8(string(value[:min(len(value), maxAttr)]), "")
		}
	}
	return attrs
}

var breaksOut = set("b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li menu nobr ol p pre ruby s small span strong strike sub sup table tt u ul var")

// htmlBreaksOut says whether an element ends an SVG that was not ended, as it does in browsers.
func htmlBreaksOut(name string) bool { return breaksOut[name] }

var inline = set("a abbr b bdi bdo big cite code data del dfn em font i ins kbd mark q ruby rb rt rp s samp small span strike strong sub sup time tt u var wbr nobr img input label button")

package reader

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Lengths that decide whether a page is one of scripts.
const (
	plenty     = 800 // characters of an article: nobody waits for more
	hardlyAny  = 200 // characters that a page of scripts may have: a title, a notice, "loading"
	muchScript = 400 // bytes of a script that is in the page itself; what counts visits is shorter
)

// roots are the ids of the elements into which frameworks put what they make.
var roots = []string{
	"root", "app", "__next", "__nuxt", "___gatsby", "svelte", "q-app", "main-app", "react-root", "app-root", "application", "mount", "container", "content", "main",
}

// needsScripts says whether a page shows its text only when its scripts are run, judged by the HTML and by how many characters were extracted of it.
// A page that has much text does not; nor does one without scripts.
func needsScripts(body []byte, extracted int) bool {
	if extracted >= plenty {
		return false
	}
	s := survey(body)
	switch {
	case s.refresh && extracted < hardlyAny:
		return true // to the page that is meant
	case !s.external && s.inline == 0:
		return false
	case s.emptyRoot || s.asksForScripts:
		return true
	default:
		return extracted < hardlyAny && s.visible < 2*hardlyAny && (s.external || s.inline >= muchScript)
	}
}

// signs are what the HTML of a page tells about its scripts.
type signs struct {
	external       bool // a script of another address
	inline         int  // bytes of scripts in the page
	visible        int  // bytes of text that is shown
	emptyRoot      bool // an element that scripts fill
	asksForScripts bool // a notice for who runs none
	refresh        bool // it leads elsewhere by itself

	data bool // the last script element holds data, and no script
}

func survey(body []byte) (s signs) {
	z := html.NewTokenizer(bytes.NewReader(body))
	var hidden atom.Atom // the element around, of those whose text is not shown
	opened := false      // the last thing was the begin of a root
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return s
		}
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			name, hasAttributes := z.TagName()
			tag := atom.Lookup(name)
			opened = s.element(z, tag, string(name), hasAttributes) && kind == html.StartTagToken && hidden == 0
			if kind == html.StartTagToken && isHidden(tag) && hidden == 0 {
				hidden = tag
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			s.emptyRoot = s.emptyRoot || opened
			opened = false
			if hidden != 0 && atom.Lookup(name) == hidden {
				hidden = 0
			}
		case html.TextToken:
			text := bytes.TrimSpace(z.Raw())
			if len(text) == 0 {
				continue
			}
			opened = false
			s.text(text, hidden)
		default: // a comment says nothing
		}
	}
}

// element takes an element, and says whether it is a root.
func (s *signs) element(z *html.Tokenizer, tag atom.Atom, name string, hasAttributes bool) (root bool) {
	root = strings.HasSuffix(name, "-root") // a component of Angular
	var source, refresh bool
	script := tag == atom.Script
	for hasAttributes {
		var key, value []byte
		key, value, hasAttributes = z.TagAttr()
		switch string(key) {
		case "src":
			source = len(value) > 0
		case "type":
			// Data and templates are no scripts.
			script = script && (len(value) == 0 || bytes.Contains(value, []byte("javascript")) || string(value) == "module")
		case "id":
			root = root || slices.Contains(roots, string(value))
		case "http-equiv":
			refresh = strings.EqualFold(string(value), "refresh")
		}
	}
	s.data = tag == atom.Script && !script
	s.external = s.external || script && source
	s.refresh = s.refresh || tag == atom.Meta && refresh
	return root && tag != atom.Script && tag != atom.Meta
}

func (s *signs) text(text []byte, hidden atom.Atom) {
	switch hidden {
	case 0:
		s.visible += len(text)
	case atom.Script:
		if !s.data {
			s.inline += len(text)
		}
	case atom.Noscript:
		lower := bytes.ToLower(text)
		s.asksForScripts = s.asksForScripts || bytes.Contains(lower, []byte("javascript")) || bytes.Contains(lower, []byte("자바스크립트"))
	default: // of no interest
	}
}

func isHidden(tag atom.Atom) bool {
	switch tag {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Title, atom.Svg, atom.Iframe, atom.Textarea:
		return true
	default:
		return false
	}
}

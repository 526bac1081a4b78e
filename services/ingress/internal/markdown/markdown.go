// Package markdown turns the Markdown of answers into HTML that a page may show as it is.
package markdown

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// MaxSize bounds a text, in bytes.
const MaxSize = 256 << 10

// topHeading is the level of the highest heading: those of the page are above it.
const topHeading = 3

var (
	converter = goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough,
			extension.Linkify),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(lower{}, 100))),
	)
	policy = newPolicy()
)

// Render gives the HTML of a text: no scripts, no styles, no forms, no images and nothing else that a browser would load, links only to http and
// https, which open elsewhere and tell nobody where they were. A text that would take long to convert comes as it is. It is safe for concurrent use.
func Render(source []byte) ([]byte, error) {
	if len(source) > MaxSize {
		return nil, fmt.Errorf("the text has %d bytes, more than %d", len(source), MaxSize)
	}
	if costly(source) {
		return plain(source), nil
	}
	var html bytes.Buffer
	if err := converter.Convert(source, &html); err != nil {
		return nil, fmt.Errorf("converting Markdown: %w", err)
	}
	return policy.SanitizeBytes(html.Bytes()), nil
}

func newPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h3", "h4", "h5", "h6", "strong", "em", "del", "blockquote", "ul", "li", "pre", "code", "table", "thead", "tbody", "tr")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowElements("ol")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[\w+#.-]{1,40}$`)).OnElements("code")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|center|right)$`)).OnElements("th", "td")
	p.AllowElements("th", "td")
	p.AllowAttrs("href").OnElements("a")
	for _, scheme := range []string{"http", "https"} {
		p.AllowURLSchemeWithCustomPolicy(scheme, func(u *url.URL) bool { return u.Host != "" }) // "https:x" is relative to a page with this scheme
	}
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
}

// lower moves headings below those of the page.
type lower struct{}

// Transform implements parser.ASTTransformer.
func (lower) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walk itself has no error
		if h, ok := n.(*ast.Heading); ok && entering {
			h.Level = min(h.Level+topHeading-1, 6)
		}
		return ast.WalkContinue, nil
	})
}

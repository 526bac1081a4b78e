package site

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// content is the text of a page.
type content struct {
	html     []byte
	headings []heading // of the second level
	sections []section // for the search
}

type heading struct{ ID, Title string }

// section is what stands below a heading.
type section struct {
	id, title string
	text      strings.Builder
}

func (s *Site) render(document string, source []byte) (*content, error) {
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))),
	)
	tree := md.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	s.relink(tree, path.Dir(document))
	c := &content{}
	c.gather(tree, source)
	var html bytes.Buffer
	if err := md.Renderer().Render(&html, source, tree); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", document, err)
	}
	c.html = html.Bytes()
	return c, nil
}

// relink has links to documents lead to their pages. A link to what is no part of the site, such as a file of the repository, becomes its text.
func (s *Site) relink(tree ast.Node, dir string) {
	var outside []*ast.Link
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walk itself has no error
		l, ok := n.(*ast.Link)
		if !ok || !entering || bytes.Contains(l.Destination, []byte("://")) || bytes.HasPrefix(l.Destination, []byte("#")) {
			return ast.WalkContinue, nil
		}
		target, anchor, _ := strings.Cut(string(l.Destination), "#")
		if strings.HasSuffix(target, "/") {
			target += index
		}
		if path.Ext(target) != ".md" || !s.has(path.Join(dir, target)) {
			outside = append(outside, l)
			return ast.WalkContinue, nil
		}
		target = pageOf(target)
		if anchor != "" {
			target += "#" + anchor
		}
		l.Destination = []byte(target)
		return ast.WalkContinue, nil
	})
	for _, l := range outside {
		parent := l.Parent()
		for c := l.FirstChild(); c != nil; c = l.FirstChild() {
			l.RemoveChild(l, c)
			parent.InsertBefore(parent, l, c)
		}
		parent.RemoveChild(parent, l)
	}
}

// gather takes the headings and the words of a page.
func (c *content) gather(tree ast.Node, source []byte) {
	c.sections = []section{{}}
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walk itself has no error
		last := &c.sections[len(c.sections)-1].text
		switch n := n.(type) {
		case *ast.Heading:
			if !entering {
				break
			}
			id, _ := n.AttributeString("id")
			name, _ := id.([]byte)
			h := heading{string(name), plain(n, source)}
			if n.Level == 2 {
				c.headings = append(c.headings, h)
			}
			c.sections = append(c.sections, section{id: h.ID, title: h.Title})
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if entering {
				last.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					last.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock:
			if entering {
				last.Write(n.Lines().Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				last.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
}

// plain is the text of a heading.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walk itself has no error
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// unanchored is what a heading loses on the way to its anchor, as it does where the repository is shown.
var unanchored = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors makes the anchors of the headings of a document, which links in documents name.
type anchors map[string]bool

// Generate implements parser.IDs.
func (a anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	base := strings.ReplaceAll(unanchored.ReplaceAllString(strings.ToLower(string(value)), ""), " ", "-")
	id := base
	for i := 1; a[id]; i++ {
		id = fmt.Sprintf("%s-%d", base, i)
	}
	a[id] = true
	return []byte(id)
}

// Put implements parser.IDs.
func (a anchors) Put(value []byte) { a[string(value)] = true }

// blocks writes blocks of code with colours, tables that scroll by themselves, and no HTML of the document.
type blocks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if block, ok := n.(*ast.FencedCodeBlock); ok && entering {
			_, _ = w.WriteString(`<pre tabindex="0"><code>`) // the renderer flushes, and has the error
			_, _ = w.WriteString(highlight(string(block.Language(source)), string(block.Lines().Value(source))))
			_, _ = w.WriteString("</code></pre>\n")
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(east.KindTable, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString("<div class=\"scroll\" tabindex=\"0\"><table>\n")
		} else {
			_, _ = w.WriteString("</table></div>\n")
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindHTMLBlock, func(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) { return ast.WalkSkipChildren, nil })
}

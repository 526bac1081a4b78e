package extract

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

// Limits on what a table may grow to: cells are filled up to the widest row.
const (
	maxSpan  = 20
	maxCells = 20_000
	longCell = 600 // bytes; a cell with more is a part of a layout
)

// dissolved marks what was a table of layout.
const dissolved = "dissolved"

// markdown writes a tree as Markdown. Nothing is escaped: models read it, no renderer does. What the converter makes nothing of is written as text.
func markdown(n *html.Node, at *url.URL) (md string) {
	prepare(n, at)
	defer func() {
		if recover() != nil {
			md = plain(n)
		}
	}()
	out, err := newConverter().ConvertNode(n)
	if err != nil || len(strings.TrimSpace(string(out))) == 0 {
		return plain(n)
	}
	return unescape(string(out))
}

// unescape takes back the entities that the converter writes for angle brackets outside of code.
func unescape(md string) string {
	parts := strings.Split(md, "```")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = brackets.Replace(parts[i])
	}
	return strings.Join(parts, "```")
}

var brackets = strings.NewReplacer("&lt;", "<", "&gt;", ">")

func newConverter() *converter.Converter {
	return converter.NewConverter(
		converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(
			base.NewBasePlugin(),
			commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
			table.NewTablePlugin(table.WithHeaderPromotion(true), table.WithSkipEmptyRows(true),
				table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal), table.WithNewlineBehavior(table.NewlineBehaviorPreserve)),
		),
	)
}

// plain is the text of a tree without tags.
func plain(n *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		for child := range n.ChildNodes() {
			walk(child)
		}
		if n.Type == html.ElementNode && isBlock(n) {
			b.WriteByte('\n')
		}
	}
	walk(n)
	return b.String()
}

// prepare makes of a tree what the converter can write: links that lead somewhere from anywhere, tables that are tables, no pictures.
func prepare(n *html.Node, at *url.URL) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		if child.Type == html.ElementNode {
			prepare(child, at)
			element(n, child, at)
		}
		child = next
	}
}

func element(parent, n *html.Node, at *url.URL) {
	switch n.Data {
	case "img":
		parent.RemoveChild(n)
	case "a":
		to, ok := resolve(get(n, "href"), at)
		text, _ := measure(n)
		switch {
		case text == 0:
			parent.RemoveChild(n)
		case !ok:
			n.Data, n.DataAtom, n.Attr = "span", 0, nil
		default:
			n.Attr = []html.Attribute{{Key: "href", Val: to}}
		}
	case "dt":
		n.Data, n.DataAtom = "p", 0
		bold := &html.Node{Type: html.ElementNode, Data: "strong"}
		for child := n.FirstChild; child != nil; child = n.FirstChild {
			n.RemoveChild(child)
			bold.AppendChild(child)
		}
		n.AppendChild(bold)
	case "dd", "figcaption", "summary", "caption", "address":
		if n.Data != "caption" {
			n.Data, n.DataAtom = "p", 0
		}
	case "table":
		tabulate(n)
	}
}

// absolute resolves a link against the address of its page. Only links into the web are ones: others run scripts or hold data.
func absolute(link, base string) (string, bool) {
	at, _ := url.Parse(base)
	return resolve(link, at)
}

func resolve(link string, at *url.URL) (string, bool) {
	link = strings.TrimSpace(link)
	if link == "" || strings.HasPrefix(link, "#") || at == nil {
		return "", false
	}
	to, err := at.Parse(link)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return "", false
	}
	to.User = nil
	return to.String(), true
}

// tabulate decides whether a table has data, and takes it apart if it is layout. The spans of one with data are bounded.
func tabulate(n *html.Node) {
	rows, widest, total, layout := 0, 0, 0, get(n, "role") == "presentation"
	for d := range n.Descendants() {
		if d.Type != html.ElementNode {
			continue
		}
		switch d.Data {
		case "table", "h1", "h2", "h3", "pre", "blockquote":
			layout = true
		case "div":
			layout = layout || has(d, dissolved)
		case "tr":
			rows++
			width := 0
			for cell := range d.ChildNodes() {
				if cell.Type == html.ElementNode && (cell.Data == "td" || cell.Data == "th") {
					width += max(1, span(cell, "colspan"))
					total += max(1, span(cell, "colspan")) * max(1, span(cell, "rowspan"))
					text, _ := measure(cell)
					layout = layout || text > longCell || text > longCell/6 && paragraphs(cell) > 1
				}
			}
			widest = max(widest, width)
		}
	}
	if layout || widest < 2 || rows*widest > maxCells || total > maxCells {
		dissolve(n)
		return
	}
	var below []spanned
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == "tr" {
			below = fill(d, below)
		}
	}
}

// spanned is a cell that reaches into rows below its own.
type spanned struct {
	column, rows int
	cell         *html.Node
}

// fill gives a row a cell for each column: what spans columns is followed by empty cells, what spans rows is there in each of them.
func fill(row *html.Node, above []spanned) (below []spanned) {
	column := 0
	reach := func(before *html.Node) {
		for len(above) > 0 && above[0].column <= column {
			row.InsertBefore(clone(above[0].cell), before)
			if above[0].rows--; above[0].rows > 0 {
				below = append(below, above[0])
			}
			above = above[1:]
			column++
		}
	}
	for cell := row.FirstChild; cell != nil; cell = cell.NextSibling {
		if cell.Type != html.ElementNode || cell.Data != "td" && cell.Data != "th" {
			continue
		}
		reach(cell)
		flatten(cell)
		wide, high := span(cell, "colspan"), span(cell, "rowspan")
		cell.Attr = nil
		for i := range wide {
			if high > 1 {
				below = append(below, spanned{column, high - 1, cell})
			}
			if i > 0 {
				row.InsertBefore(&html.Node{Type: html.ElementNode, Data: cell.Data}, cell.NextSibling)
				cell = cell.NextSibling
			}
			column++
		}
	}
	for len(above) > 0 {
		column = max(column, above[0].column)
		reach(nil)
	}
	slices.SortStableFunc(below, func(a, b spanned) int { return a.column - b.column })
	return below
}

// paragraphs counts the blocks of text in a cell.
func paragraphs(cell *html.Node) (n int) {
	for d := range cell.Descendants() {
		if d.Type == html.ElementNode && (d.Data == "p" || d.Data == "div") && !hasBlock(d) {
			n++
		}
	}
	return n
}

// span reads an attribute of a cell and takes it off if it is none of a sensible table.
func span(cell *html.Node, key string) int {
	n, err := strconv.Atoi(get(cell, key))
	if err == nil && n >= 1 && n <= maxSpan {
		return n
	}
	for i, a := range cell.Attr {
		if a.Key == key {
			cell.Attr = append(cell.Attr[:i], cell.Attr[i+1:]...)
			break
		}
	}
	return 1
}

// dissolve makes blocks of the cells of a table.
func dissolve(n *html.Node) {
	n.Data, n.DataAtom, n.Attr = "div", 0, []html.Attribute{{Key: dissolved}}
	for d := range n.Descendants() {
		switch d.Data {
		case "tbody", "thead", "tfoot", "tr", "td", "th", "caption":
			if d.Type == html.ElementNode {
				d.Data, d.DataAtom = "div", 0
			}
		}
	}
}

// flatten makes one line of the blocks in a cell.
func flatten(cell *html.Node) {
	for d := range cell.Descendants() {
		if d.Type != html.ElementNode || inline[d.Data] {
			continue
		}
		if d.Data == "br" {
			d.Type, d.Data, d.DataAtom = html.TextNode, " ", 0
			continue
		}
		d.Data, d.DataAtom = "span", 0
		d.AppendChild(&html.Node{Type: html.TextNode, Data: " "})
	}
}

// Package extract reads what the web answers with: bytes of some kind become the title, the day and the text of a page. Whatever the bytes are, time and
// memory are bounded by limits on what is looked at, and nothing panics.
package extract

import (
	"encoding/json"
	"errors"
	"mime"
	"net/url"
	"path"
	"strings"
	"unicode"

	"hydrallm/services/enricher/internal/page"
)

// ErrNoText says that there is nothing to read: an empty page, a picture, a file of a kind that has no text, or bytes that are in no known charset.
var ErrNoText = errors.New("no text in the page")

// maxTitle is the most characters of a title.
const maxTitle = 300

// Extract makes a document of what a server answered with. contentType is the header as it came, or empty; pageURL is where the page was in the
// end, to which relative links refer. The error is ErrNoText, or none. The text is valid UTF-8 in normal form C and has at most page.MaxRunes characters.
func Extract(body []byte, contentType, pageURL string) (page.Document, error) {
	doc := page.Document{URL: pageURL}
	body = body[:min(len(body), maxBody)]
	switch kindOf(body, contentType) {
	case kindHTML:
		readHTML(&doc, decode(body, contentType))
	case kindXML:
		readXML(&doc, decode(body, contentType))
	case kindJSON:
		readJSON(&doc, decode(body, contentType))
	case kindText:
		readText(&doc, decode(body, contentType))
	case kindPDF:
		readPDF(&doc, body)
	case kindNone:
		return doc, ErrNoText
	}
	doc.Title = oneLine(doc.Title, maxTitle)
	doc.Text = tidy(doc.Text)
	if !strings.ContainsFunc(doc.Text, readable) || broken(doc.Text) > maxBroken {
		return page.Document{URL: pageURL}, ErrNoText
	}
	return doc, nil
}

// maxBody is the most bytes that are looked at. The fetcher has a limit of its own.
const maxBody = 16 << 20

func readable(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsSymbol(r) }

func readText(doc *page.Document, text string) {
	doc.Text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	for line := range strings.Lines(doc.Text) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "# "); ok {
			doc.Title = title // of Markdown
		}
		if strings.TrimSpace(line) != "" {
			break
		}
	}
	if u, err := url.Parse(doc.URL); doc.Title == "" && err == nil && path.Base(u.Path) != "/" && path.Base(u.Path) != "." {
		doc.Title = path.Base(u.Path)
	}
	doc.Published = dateIn(doc.Text)
}

// readJSON keeps a document of JSON as it is, indented if it stands in one line.
func readJSON(doc *page.Document, text string) {
	doc.Text = text
	if len(text) < maxJSONLD && strings.Count(text, "\n") < 3 {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		if e.Encode(json.RawMessage(text)) == nil {
			doc.Text = b.String()
		}
	}
	doc.Title = cut(inJSON(text[:min(len(text), maxJSONLD)], "title"), maxTitle)
	doc.Published = dateIn(inJSON(text[:min(len(text), maxJSONLD)], "datePublished"))
}

// kind is how bytes are read.
type kind int

const (
	kindNone kind = iota
	kindHTML
	kindXML
	kindJSON
	kindText
	kindPDF
)

// kindOf tells how bytes are read. What they are counts more than the label: servers send pages as text/plain, and files as text/html.
func kindOf(body []byte, contentType string) kind {
	label, _, _ := mime.ParseMediaType(contentType)
	if label == "" {
		label, _, _ = strings.Cut(strings.ToLower(contentType), ";")
		label = strings.TrimSpace(label)
	}
	head := beginning(body)
	switch {
	case strings.HasPrefix(head, "%pdf-"):
		return kindPDF
	case label == "application/pdf" || isBinary(body):
		return kindNone
	case strings.HasPrefix(label, "image/") && label != "image/svg+xml", strings.HasPrefix(label, "video/"), strings.HasPrefix(label, "audio/"),
		strings.HasPrefix(label, "font/"), label == "application/zip", label == "application/gzip":
		return kindNone
	case strings.HasPrefix(head, "<!doctype html"), strings.HasPrefix(head, "<html"), strings.HasPrefix(head, "<head"), strings.HasPrefix(head, "<body"):
		return kindHTML
	case strings.HasPrefix(head, "<?xml"), strings.HasPrefix(head, "<rss"), strings.HasPrefix(head, "<feed"):
		if strings.Contains(head, "<html") || strings.Contains(head, "<!doctype html") {
			return kindHTML
		}
		return kindXML
	case label == "text/html", label == "application/xhtml+xml":
		return kindHTML
	case label == "application/xml", label == "text/xml", strings.HasSuffix(label, "+xml"):
		return kindXML
	case label == "application/json", strings.HasSuffix(label, "+json"), label == "text/json":
		return kindJSON
	case label == "" && strings.HasPrefix(head, "<"):
		return kindHTML
	case label == "" && (strings.HasPrefix(head, "{") || strings.HasPrefix(head, "[")) && json.Valid(body):
		return kindJSON
	case label == "", strings.HasPrefix(label, "text/"), label == "application/octet-stream", strings.HasPrefix(label, "application/"):
		return kindText
	}
	return kindNone
}

// beginning gives what a body begins with, in lower case, without marks, spaces and comments.
func beginning(body []byte) string {
	text := string(body[:min(len(body), 4096)])
	if decoded, ok := marked(body[:min(len(body), 4096)]); ok {
		text = decoded
	} else if e := wide(body); e != nil {
		text = decodeAs(e, body[:min(len(body), 4096)])
	}
	text = strings.ToLower(strings.TrimSpace(text))
	for strings.HasPrefix(text, "<!--") {
		_, rest, ok := strings.Cut(text, "-->")
		if !ok {
			break
		}
		text = strings.TrimSpace(rest)
	}
	return text[:min(len(text), 512)]
}

// isBinary says whether the first bytes are those of no text: many control characters, which no charset has in texts.
func isBinary(body []byte) bool {
	if _, ok := marked(body); ok || wide(body) != nil {
		return false
	}
	head := body[:min(len(body), 1024)]
	n := 0
	for _, c := range head {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1b {
			n++
		}
	}
	return n > len(head)/20
}

package extract

import (
	"encoding/xml"
	"io"
	"strings"
	"time"

	"hydrallm/services/enricher/internal/page"
)

// maxEntries is how many entries of a feed are read, and maxXML how many elements of any other XML.
const (
	maxEntries = 100
	maxXML     = 50_000
)

// entry is one item of a feed.
type entry struct{ title, link, date, text string }

// readXML makes a list of the entries of a feed (RSS, RDF, Atom), and of other XML its text, a line for each element that has some.
func readXML(doc *page.Document, text string) {
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // it is UTF-8 by now, whatever is declared
	var (
		names   []string
		entries []entry
		current *entry
		value   strings.Builder
		lines   []string
	)
	for n := 0; n < maxXML && len(entries) < maxEntries; n++ {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(names) >= maxDepth {
				n = maxXML
				break
			}
			name := strings.ToLower(t.Name.Local)
			names = append(names, name)
			value.Reset()
			switch name {
			case "item", "entry":
				current = &entry{}
			case "link":
				if href := attr(t, "href"); current != nil && href != "" && (current.link == "" || attr(t, "rel") == "alternate") {
					current.link = href
				}
			}
		case xml.CharData:
			if value.Len() < maxText {
				value.Write(t)
			}
		case xml.EndElement:
			name := strings.ToLower(t.Name.Local)
			content := strings.TrimSpace(value.String())
			value.Reset()
			names = names[:max(0, len(names)-1)]
			if name == "item" || name == "entry" {
				if current != nil {
					entries = append(entries, *current)
				}
				current = nil
				break
			}
			if current != nil {
				current.set(name, content)
			} else if name == "title" && doc.Title == "" {
				doc.Title = content
			}
			if content != "" {
				lines = append(lines, scan(content, "").plain)
			}
		}
	}
	if len(entries) == 0 {
		doc.Text = strings.Join(lines, "\n")
		if len(lines) == 0 {
			readHTML(doc, text)
		}
		return
	}
	var b strings.Builder
	for _, e := range entries {
		e.write(&b, doc.URL)
	}
	doc.Text = b.String()
	doc.Published = entries[0].day()
}

func attr(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if strings.EqualFold(a.Name.Local, name) {
			return a.Value
		}
	}
	return ""
}

func (e *entry) day() time.Time { return dateIn(e.date) }

// set stores an element of an entry. The longer text counts: content:encoded and description say the same at different lengths.
func (e *entry) set(name, content string) {
	switch name {
	case "title":
		if e.title == "" {
			e.title = content
		}
	case "link":
		if e.link == "" {
			e.link = content
		}
	case "pubdate", "published", "date":
		e.date = content
	case "updated":
		if e.date == "" {
			e.date = content
		}
	case "description", "summary", "content", "encoded":
		if len(content) > len(e.text) {
			e.text = content
		}
	}
}

func (e *entry) write(b *strings.Builder, base string) {
	title := oneLine(scan(e.title, "").plain, maxTitle)
	if to, ok := absolute(e.link, base); ok {
		title = "[" + title + "](" + to + ")"
	}
	b.WriteString("## " + title + "\n\n")
	if day := e.day(); !day.IsZero() {
		b.WriteString(day.Format("2006-01-02") + "\n\n")
	}
	if e.text != "" {
		b.WriteString(fragment(e.text, base) + "\n\n")
	}
}

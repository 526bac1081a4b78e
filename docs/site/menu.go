package site

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// menu is the navigation: what index.md links to, below its headings.
type menu struct {
	parts  []menuPart
	titles map[string]string // of all documents
}

type menuPart struct {
	title     string
	documents []string
}

var (
	menuHeading = regexp.MustCompile(`^## +(.+)$`)
	menuLink    = regexp.MustCompile(`\]\(([\w./-]+\.md)\)`)
	topHeading  = regexp.MustCompile(`(?m)^# +(.+)$`)
)

func (s *Site) readMenu() (*menu, error) {
	text, err := fs.ReadFile(s.files, index)
	if err != nil {
		return nil, fmt.Errorf("reading the index of the documents: %w", err)
	}
	m := &menu{parts: []menuPart{{}}, titles: map[string]string{}}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if h := menuHeading.FindStringSubmatch(line); h != nil {
			m.parts = append(m.parts, menuPart{title: h[1]})
		}
		last := &m.parts[len(m.parts)-1]
		for _, l := range menuLink.FindAllStringSubmatch(line, -1) {
			if s.has(path.Clean(l[1])) {
				last.documents = append(last.documents, path.Clean(l[1]))
			}
		}
	}
	err = fs.WalkDir(s.files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		text, err := fs.ReadFile(s.files, name)
		m.titles[name] = titleOf(name, string(text))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the titles of the documents: %w", err)
	}
	return m, nil
}

// titleOf is the first heading of a document, or its name.
func titleOf(name, text string) string {
	if h := topHeading.FindStringSubmatch(text); h != nil {
		return strings.ReplaceAll(h[1], "`", "")
	}
	return strings.TrimSuffix(path.Base(name), ".md")
}

// item is an entry of the navigation on one page.
type item struct {
	Title, Link string
	Current     bool
	Below       []item
}

type itemPart struct {
	Title string
	Items []item
}

// seenFrom gives the navigation on the page of a document: of a folder the other pages are shown on the pages in it.
func (m *menu) seenFrom(document string, siblings []string) []itemPart {
	root := rootFrom(document)
	entry := func(d string) item { return item{Title: m.titles[d], Link: root + pageOf(d), Current: d == document} }
	var parts []itemPart
	for _, p := range m.parts {
		part := itemPart{Title: p.title}
		for _, d := range p.documents {
			i := entry(d)
			if dir := path.Dir(d); dir != "." && path.Base(d) == index && dir == path.Dir(document) {
				for _, sibling := range siblings {
					if sibling != d {
						i.Below = append(i.Below, entry(sibling))
					}
				}
			}
			part.Items = append(part.Items, i)
		}
		if len(part.Items) > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

// rootFrom is the way from the page of a document to the root of the site.
func rootFrom(document string) string { return strings.Repeat("../", strings.Count(document, "/")) }

package site

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"sync"
)

// layout is what all pages have around their text.
var layout = sync.OnceValues(func() (*template.Template, error) { return template.ParseFS(static, "static/page.html") })

// page makes the page of a document.
func (s *Site) page(document string) ([]byte, error) {
	m, err := s.menu()
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(s.files, document)
	if err != nil {
		return nil, fmt.Errorf("reading a document: %w", err)
	}
	content, err := s.render(document, text)
	if err != nil {
		return nil, err
	}
	around, err := layout()
	if err != nil {
		return nil, fmt.Errorf("reading the layout of pages: %w", err)
	}
	siblings, err := fs.Glob(s.files, path.Join(path.Dir(document), "*.md"))
	if err != nil {
		return nil, fmt.Errorf("listing the documents of a folder: %w", err)
	}
	var out bytes.Buffer
	err = around.Execute(&out, map[string]any{
		"Title": m.titles[document], "Root": rootFrom(document), "Home": document == index, "Menu": m.seenFrom(document, siblings),
		"Headings": content.headings, "Content": template.HTML(content.html), //nolint:gosec // it is made of our documents, without the HTML in them
	})
	if err != nil {
		return nil, fmt.Errorf("writing the page of %s: %w", document, err)
	}
	return out.Bytes(), nil
}

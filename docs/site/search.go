package site

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// entry is a section of a page, as the search of the browser reads it.
type entry struct {
	Link  string `json:"l"` // from the root of the site
	Page  string `json:"p"` // its title
	Title string `json:"h"` // of the section, "" for what stands before the first one
	Text  string `json:"t"`
}

// search makes the file that the browser searches in.
func (s *Site) search() ([]byte, error) {
	m, err := s.menu()
	if err != nil {
		return nil, err
	}
	entries := []entry{}
	for _, document := range slices.Sorted(maps.Keys(m.titles)) {
		text, err := fs.ReadFile(s.files, document)
		if err != nil {
			return nil, fmt.Errorf("reading a document: %w", err)
		}
		content, err := s.render(document, text)
		if err != nil {
			return nil, err
		}
		for i := range content.sections {
			part := &content.sections[i]
			e := entry{Link: pageOf(document), Page: m.titles[document], Title: part.title, Text: strings.Join(strings.Fields(part.text.String()), " ")}
			if part.id != "" {
				e.Link += "#" + part.id
			}
			if e.Text != "" || part.title != "" {
				entries = append(entries, e)
			}
		}
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return nil, fmt.Errorf("encoding the text of the pages: %w", err)
	}
	return text, nil
}

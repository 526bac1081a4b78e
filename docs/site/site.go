// Package site makes a web site of documents in Markdown: pages with navigation, a search in the browser, light and dark. Nothing is made before it is
// asked for. All links are relative, so that the site may be below any path; no page needs anything from elsewhere, has a script in its text, or needs one
// to be read.
package site

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed static
var static embed.FS

// index is the document whose links, below its headings, are the navigation.
const index = "index.md"

// searchFile has the text of all pages for the search in the browser.
const searchFile = "search.json"

// Site is made by New and may be used by several goroutines at once.
type Site struct {
	files fs.FS
	menu  func() (*menu, error)
}

// New makes the site of documents, which index.md links to.
func New(files fs.FS) *Site {
	s := &Site{files: files}
	s.menu = sync.OnceValues(s.readMenu)
	return s
}

// Paths lists all files of the site, sorted: a page NAME.html for each NAME.md, pictures, and what pages load.
func (s *Site) Paths() ([]string, error) {
	paths := []string{searchFile}
	err := fs.WalkDir(s.files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
		case path.Ext(name) == ".md":
			paths = append(paths, pageOf(name))
		case path.Ext(name) == ".png":
			paths = append(paths, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the documents: %w", err)
	}
	names, err := fs.Glob(static, "static/*")
	if err != nil {
		return nil, fmt.Errorf("listing the files of pages: %w", err)
	}
	for _, name := range names {
		if path.Ext(name) != ".html" {
			paths = append(paths, path.Base(name))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// File gives a file of the site, nil when there is none. A path that is empty or ends in a slash is that of the page in this directory.
func (s *Site) File(name string) ([]byte, error) {
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	read := s.source(name)
	if read == nil {
		return nil, nil
	}
	return read()
}

// source says how a file is made, or gives nil when there is no such file.
func (s *Site) source(name string) func() ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil
	}
	if name == searchFile {
		return s.search
	}
	if document := strings.TrimSuffix(name, ".html") + ".md"; path.Ext(name) == ".html" {
		if s.has(document) {
			return func() ([]byte, error) { return s.page(document) }
		}
		return nil
	}
	if _, err := fs.Stat(static, "static/"+name); err == nil && !strings.Contains(name, "/") {
		return func() ([]byte, error) { return static.ReadFile("static/" + name) }
	}
	if path.Ext(name) == ".png" && s.has(name) {
		return func() ([]byte, error) { return fs.ReadFile(s.files, name) }
	}
	return nil
}

func (s *Site) has(name string) bool {
	info, err := fs.Stat(s.files, name)
	return err == nil && !info.IsDir()
}

// pageOf is the path of the page of a document.
func pageOf(document string) string { return strings.TrimSuffix(document, ".md") + ".html" }

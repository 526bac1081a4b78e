// Package ui holds the files of the web interface (section 14), and knows how browsers may keep them. They are what is in static, nothing is built:
// modules of JavaScript that the browser links itself.
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"path"
	"strings"
	"sync"
)

//go:embed static
var static embed.FS

// PolicyHeader is the Content-Security-Policy of all files: nothing is run, shown or asked that is not the gateway's own.
const PolicyHeader = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// File is a file of the interface. Its fields must not be changed.
type File struct {
	Type      string // of the content
	Body      []byte
	Gzip      []byte // the same; nil when that would not be smaller
	ETag      string
	Immutable bool // what has this path never changes
}

// Files gives all files by their paths below the root of the interface, but for the page: see Page. They are in a folder that is named by their content, so
// that a browser never has parts of two versions.
func Files() map[string]*File { return all().files }

// Page gives the page, for a gateway that was told to speak a language, "" for none: it is the one that a browser begins with. nil is a language that
// the interface does not have.
func Page(locale string) *File { return all().pages[locale] }

// DemoPage is Page for a demo, which has a section of its own.
func DemoPage(locale string) *File { return all().demos[locale] }

// Locales are the languages of the interface.
func Locales() []string { return []string{"en", "ko"} }

// site is all that is served.
type site struct {
	files, pages, demos map[string]*File
}

var all = sync.OnceValue(func() *site {
	s, err := read(static)
	if err != nil { // they are part of the program, and a test reads them
		panic(err)
	}
	return s
})

const page = "index.html"

func read(from fs.FS) (*site, error) {
	bodies, names, err := contents(from)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	for _, name := range names {
		fmt.Fprintf(sum, "%s %d\n", name, len(bodies[name]))
		sum.Write(bodies[name])
	}
	folder := hex.EncodeToString(sum.Sum(nil)[:8])
	s := &site{files: map[string]*File{}, pages: map[string]*File{}, demos: map[string]*File{}}
	var modules []string
	for _, name := range names {
		if name == page {
			continue
		}
		if s.files[folder+"/"+name], err = NewFile(name, bodies[name], true); err != nil {
			return nil, err
		}
		if strings.HasSuffix(name, ".js") {
			modules = append(modules, folder+"/"+name)
		}
	}
	for _, locale := range append(Locales(), "") {
		for demo, pages := range map[bool]map[string]*File{false: s.pages, true: s.demos} {
			body, err := fill(bodies[page], map[string]any{"Folder": folder, "Modules": modules, "Locale": locale, "Demo": demo})
			if err != nil {
				return nil, err
			}
			if pages[locale], err = NewFile(page, body, false); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// contents reads all files, whose names come sorted.
func contents(from fs.FS) (bodies map[string][]byte, names []string, err error) {
	bodies = map[string][]byte{}
	err = fs.WalkDir(from, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(from, name)
		short := strings.TrimPrefix(name, "static/")
		bodies[short], names = body, append(names, short)
		return err
	})
	if err != nil {
		err = fmt.Errorf("reading the files of the web interface: %w", err)
	}
	return bodies, names, err
}

// fill writes what is only known now into the page: the paths of this version. All modules are named there, so that none waits for the one that imports it.
func fill(index []byte, values map[string]any) ([]byte, error) {
	t, err := template.New(page).Parse(string(index))
	if err != nil {
		return nil, fmt.Errorf("reading the page of the web interface: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("writing the page of the web interface: %w", err)
	}
	return out.Bytes(), nil
}

// NewFile makes a file, whose type is that of its name.
func NewFile(name string, body []byte, immutable bool) (*File, error) {
	sum := sha256.Sum256(body)
	f := &File{Type: typeOf(name), Body: body, ETag: `"` + hex.EncodeToString(sum[:12]) + `"`, Immutable: immutable}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	if packed.Len() < len(body) {
		f.Gzip = packed.Bytes()
	}
	return f, nil
}

// types does not depend on what the machine says of files, as package mime does.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".json": "application/json", ".png": "image/png",
}

func typeOf(name string) string {
	if t, ok := types[path.Ext(name)]; ok {
		return t
	}
	return mime.TypeByExtension(".bin")
}

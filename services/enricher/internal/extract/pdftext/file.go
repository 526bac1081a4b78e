// Package pdftext reads the text of PDF files. It is made for files of strangers: it keeps to limits of depth, size and work, whatever a file says, where
// libraries for PDF end the process on some of them (endless recursion, tables of any size) or need a sandbox of hundreds of megabytes.
package pdftext

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
)

// Limits on the work for one file.
const (
	maxObjects = 200_000
	maxDecoded = 24 << 20 // bytes of all streams together
	maxWork    = 64 << 20 // bytes of objects read, again and again if they are referred to
	maxObject  = 256 << 10
	maxPages   = 500
	maxText    = 400 << 10 // bytes
)

// ErrUnreadable says that a file is no PDF, is encrypted, or has no text that can be read.
var ErrUnreadable = errors.New("no readable text in the PDF")

// Document is what is read of a file.
type Document struct {
	Title   string // of its properties
	Created string // "D:20240305...", as it stands there
	Text    string // lines as they are set, an empty line between paragraphs
}

// file holds the objects of a PDF. Its cross-reference table is not used: it is often wrong, and where it is right, a search finds the same.
type file struct {
	b      []byte
	at     map[int]int // where objects begin
	packed map[int]any // objects of object streams
	budget int         // bytes of streams that may still be decoded
	work   int         // bytes of objects that were read
	mapped int         // characters of all fonts
}

var (
	objStart  = regexp.MustCompile(`(?:^|[^0-9])([0-9]{1,9})[ \t\r\n\f]{1,4}[0-9]{1,5}[ \t\r\n\f]{1,4}obj\b`)
	encrypted = regexp.MustCompile(`/Encrypt[ \r\n\t]+\d+[ \r\n\t]+\d+[ \r\n\t]+R|/Encrypt[ \r\n\t]*<<`)
)

// Read reads a file.
func Read(b []byte) (Document, error) {
	if !bytes.Contains(b[:min(len(b), 1024)], []byte("%PDF-")) || encrypted.Match(b) {
		return Document{}, ErrUnreadable
	}
	f := &file{b: b, at: map[int]int{}, packed: map[int]any{}, budget: maxDecoded}
	var ids []int
	for _, m := range objStart.FindAllSubmatchIndex(b, maxObjects) {
		id, _ := strconv.Atoi(string(b[m[2]:m[3]]))
		f.at[id] = m[1]
		ids = append(ids, id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, id := range ids {
		f.unpack(id)
	}
	var doc Document
	r := &reader{file: f, fonts: map[any]*font{}}
	for _, page := range f.pages(ids) {
		r.page(page)
		if r.out.Len() > maxText || f.budget <= 0 {
			break
		}
	}
	doc.Text = r.out.String()
	for _, id := range ids {
		if d, ok := f.get(ref(id)).(dict); ok && d["Type"] == nil && d["Title"] != nil && (d["Producer"] != nil || d["CreationDate"] != nil || d["Author"] != nil) {
			title, _ := f.get(d["Title"]).(string)
			doc.Title = textString(title)
			doc.Created, _ = f.get(d["CreationDate"]).(string)
		}
	}
	if len(bytes.TrimSpace([]byte(doc.Text))) == 0 {
		return Document{}, ErrUnreadable
	}
	return doc, nil
}

// get follows references.
func (f *file) get(v any) any {
	for range 8 {
		r, ok := v.(ref)
		if !ok {
			return v
		}
		if at, there := f.at[int(r)]; there {
			v, _ = f.object(at)
		} else {
			v = f.packed[int(r)]
		}
	}
	return nil
}

// object reads the object at a place, and says where it ends. Work is counted: objects may be asked for often, and overlap.
func (f *file) object(at int) (any, int) {
	if f.work > maxWork {
		return nil, at
	}
	l := lexer{b: f.b[:min(len(f.b), at+maxObject)], at: at}
	v, _ := l.next()
	f.work += l.at - at
	return v, l.at
}

func (f *file) dict(v any) dict {
	d, _ := f.get(v).(dict)
	return d
}

// stream gives the dictionary and the data of a stream.
func (f *file) stream(v any) (dict, []byte) {
	r, ok := v.(ref)
	at, there := f.at[int(r)]
	if !ok || !there {
		return nil, nil
	}
	d, end := f.object(at)
	head, ok := d.(dict)
	if !ok {
		return nil, nil
	}
	data, ok := bytes.CutPrefix(f.b[skipTo(f.b, end):], []byte("stream"))
	if !ok {
		return head, nil
	}
	data = bytes.TrimPrefix(bytes.TrimPrefix(data, []byte("\r")), []byte("\n"))
	n, _ := f.get(head["Length"]).(float64)
	if end := int(n); n > 0 && n < float64(len(data)) && bytes.HasPrefix(bytes.TrimLeft(data[end:], "\r\n "), []byte("endstream")) {
		data = data[:end]
	} else if end := bytes.Index(data, []byte("endstream")); end >= 0 {
		data = data[:end]
	}
	var filters []string
	switch filter := f.get(head["Filter"]).(type) {
	case name:
		filters = []string{string(filter)}
	case []any:
		for _, one := range filter {
			n, _ := f.get(one).(name)
			filters = append(filters, string(n))
		}
	}
	if f.budget -= len(data); f.budget <= 0 {
		return head, nil
	}
	return head, unfilter(data, filters, &f.budget)
}

// skipTo finds the keyword behind a dictionary.
func skipTo(b []byte, at int) int {
	l := lexer{b: b, at: at}
	l.space()
	return min(l.at, len(b))
}

// unpack reads the objects of an object stream.
func (f *file) unpack(id int) {
	l := lexer{b: f.b[:min(len(f.b), f.at[id]+4096)], at: f.at[id]}
	l.space()
	if l.peek(0) != '<' || !bytes.Contains(l.b[l.at:], []byte("/ObjStm")) {
		return
	}
	head, data := f.stream(ref(id))
	if head["Type"] != name("ObjStm") {
		return
	}
	first, _ := f.get(head["First"]).(float64)
	count, _ := f.get(head["N"]).(float64)
	index := lexer{b: data}
	for range min(int(count), maxObjects) {
		a, ok1 := index.next()
		b, ok2 := index.next()
		number, _ := a.(float64)
		offset, _ := b.(float64)
		if !ok1 || !ok2 || len(f.packed) > maxObjects {
			return
		}
		if at := first + offset; at >= 0 && at < float64(len(data)) {
			l := lexer{b: data, at: int(at)}
			f.packed[int(number)], _ = l.next()
		}
	}
}

// pages gives the pages in their order, with what they inherit.
func (f *file) pages(ids []int) []dict {
	var pages []dict
	seen := map[ref]bool{}
	var walk func(v any, resources any, depth int)
	walk = func(v, resources any, depth int) {
		r, ok := v.(ref)
		if !ok || seen[r] || depth > maxNesting || len(pages) >= maxPages {
			return
		}
		seen[r] = true
		d := f.dict(r)
		if own := d["Resources"]; own != nil {
			resources = own
		}
		if kids, ok := f.get(d["Kids"]).([]any); ok {
			for _, kid := range kids {
				walk(kid, resources, depth+1)
			}
			return
		}
		if d["Contents"] != nil {
			pages = append(pages, dict{"Contents": d["Contents"], "Resources": resources})
		}
	}
	for id := range f.packed {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if d := f.dict(ref(id)); d["Type"] == name("Catalog") {
			walk(d["Pages"], nil, 0)
		}
	}
	for _, id := range ids {
		if len(pages) > 0 && len(seen) > 0 {
			break
		}
		if d := f.dict(ref(id)); d["Type"] == name("Page") {
			walk(ref(id), nil, 0)
		}
	}
	return pages
}

package openai

import (
	"bytes"
	"errors"
	"io"

	"hydrallm/shared/openai/rawjson"
)

// Event is one block of an event stream. Its slices alias the reader's buffer and are valid until the next call of Next.
type Event struct {
	// Raw is what was received, with the line ends and the blank line that closes the block. The Raw of all events of a stream, joined, are
	// the stream.
	Raw []byte
	// Data is the value of the data lines, joined with line feeds. It is nil when the block has none: a comment, a lone blank line, or an
	// event that means nothing to a client. An empty data line gives an empty slice that is not nil.
	Data []byte
	// Name, ID and Retry are the fields event, id and retry; nil when absent.
	Name, ID, Retry []byte
	// Lines counts the data lines.
	Lines int
	// Cut says that the stream ended before the block was closed by a blank line, so the data may be half a value.
	Cut bool
	// Noncanonical says that the block did not come in plain lines (see Reader), has a line that is no field, begins with a byte order mark or has no
	// blank line at its end, so Raw means nothing to a client.
	Noncanonical bool
}

// DefaultMaxEvent is the largest event that a Reader accepts unless told otherwise, in bytes.
const DefaultMaxEvent = 32 << 20

// ErrEventTooLarge says that one event of a stream exceeds the reader's limit.
var ErrEventTooLarge = errors.New("event of the stream is too large")

const (
	firstBuffer = 4 << 10
	keepBuffer  = 256 << 10 // larger buffers are given up by Reset
)

// Reader splits a stream into events as soon as their bytes are there: it reads only when no whole event is buffered, and takes what one
// Read gives. Line ends may be LF, CRLF or CR. It is not safe for concurrent use.
//
// Three departures from the standard serve what upstreams really send: a field called "error" counts as the data of an event of that name; a block
// that begins with a brace or a bracket counts as data without the field name; and data that is complete JSON, or the end mark, is an event of its
// own when more data follows in its block. Such an event comes when the next one begins, so that a stream without blank lines flows.
type Reader struct {
	src io.Reader
	max int
	err error // of the source, or ErrEventTooLarge; final

	buf   []byte // buf[start:] is not yet given out
	start int    // of the current block
	line  int    // start of the current line
	scan  int    // there is no line end between line and scan

	skipLF  bool // the last line ended in CR: a line feed that follows belongs to it
	begun   bool // the first line was read, which may have a byte order mark
	block   block
	next    Event // read ahead by Buffered
	isAhead bool
}

// block is what was read of an unfinished event. Places are relative to its start, since the buffer may move.
type block struct {
	data, name, id, retry place
	joined                []byte // the data, when it has several lines
	lines                 int
	value                 valueScan // of the lines of data but the last
	last                  place     // the last one, unless value knows it
	behind                place     // the first line behind it
	bare                  bool      // data without field names
	noncanonical          bool
	errorField            bool
}

type place struct {
	start, end int
	ok         bool
}

func (p place) of(raw []byte) []byte {
	if !p.ok {
		return nil
	}
	return raw[p.start:p.end:p.end]
}

// NewReader makes a reader of src. An event of more than maxEvent bytes is an error; 0 stands for DefaultMaxEvent.
func NewReader(src io.Reader, maxEvent int) *Reader {
	r := &Reader{}
	r.Reset(src, maxEvent)
	return r
}

// Reset makes r a reader of src, as NewReader does. It keeps the buffer unless that is large.
func (r *Reader) Reset(src io.Reader, maxEvent int) {
	if maxEvent == 0 {
		maxEvent = DefaultMaxEvent
	}
	buf := r.buf[:0]
	if cap(buf) > keepBuffer {
		buf = nil
	}
	*r = Reader{src: src, max: maxEvent, buf: buf}
}

// Next gives the next event. At the end of the stream it gives a block that was not closed (with Cut set), then io.EOF. Another error is
// that of the source, or ErrEventTooLarge; it comes after all events that were complete.
func (r *Reader) Next() (Event, error) {
	if r.isAhead {
		r.isAhead = false
		return r.next, nil
	}
	for {
		if e, ok := r.parse(); ok {
			return e, nil
		}
		if err := r.fill(); err != nil {
			if errors.Is(err, io.EOF) && r.start < len(r.buf) {
				return r.rest(), nil
			}
			return Event{}, err
		}
	}
}

// Buffered says whether Next would give an event without reading. It does not invalidate the last event.
func (r *Reader) Buffered() bool {
	if !r.isAhead {
		r.next, r.isAhead = r.parse()
	}
	return r.isAhead
}

// parse takes the next event out of the buffer, if it is complete.
func (r *Reader) parse() (Event, bool) {
	for {
		if r.skipLF && r.scan < len(r.buf) {
			if r.buf[r.scan] == '\n' {
				r.line++
				r.scan++
			}
			r.skipLF = false
		}
		end := r.lineEnd()
		if end < 0 {
			return Event{}, false
		}
		line := place{r.line, end, true}
		r.line = end + 1
		if r.buf[end] == '\r' {
			if r.skipLF = r.line == len(r.buf); !r.skipLF && r.buf[r.line] == '\n' {
				r.line++
			}
		}
		r.scan = r.line
		switch r.takeLine(line) {
		case within:
			continue
		case before:
			return r.split(), true
		case behind:
		}
		if r.line-r.start > r.max {
			r.err = ErrEventTooLarge
			return Event{}, false
		}
		e := r.event(r.line)
		r.start = r.line
		return e, true
	}
}

// split ends the block behind its last line of data. What follows is read again, as the next block.
func (r *Reader) split() Event {
	b := &r.block
	end := r.start + b.behind.start
	for _, field := range []*place{&b.name, &b.id, &b.retry} {
		if field.start > b.behind.start {
			*field = place{}
		}
	}
	b.noncanonical = true
	e := r.event(end)
	r.start, r.line, r.scan, r.skipLF = end, end, end, false
	return e
}

// lineEnd finds the end of the current line: the index of its CR or LF, or -1.
func (r *Reader) lineEnd() int {
	rest := r.buf[r.scan:]
	n := bytes.IndexByte(rest, '\n')
	if n >= 0 {
		rest = rest[:n]
	}
	if cr := bytes.IndexByte(rest, '\r'); cr >= 0 {
		n = cr
	}
	if n < 0 {
		r.scan = len(r.buf)
		return -1
	}
	return r.scan + n
}

// blockEnd says where a block ends.
type blockEnd uint8

const (
	within blockEnd = iota // not yet: the line belongs to it
	behind                 // with this line, which is blank
	before                 // before this line, and maybe others that lie between it and the last line of data
)

// takeLine reads one line of a block and answers whether the block ends there.
func (r *Reader) takeLine(line place) blockEnd {
	text := line.of(r.buf)
	if !r.begun {
		r.begun = true
		if bytes.HasPrefix(text, byteOrderMark) {
			line.start += len(byteOrderMark)
			text = text[len(byteOrderMark):]
			r.block.noncanonical = true // many clients would take the mark for a part of the field name
		}
	}
	if len(text) == 0 {
		return behind
	}
	b := &r.block
	value := place{line.start - r.start, line.end - r.start, true}
	if b.lines > 0 && !b.behind.ok {
		b.behind = value
	}
	if b.bare || r.beginsBare(text) {
		if r.complete() {
			return before
		}
		b.bare, b.noncanonical = true, true
		r.addData(value)
		return within
	}
	colon := bytes.IndexByte(text, ':')
	if colon == 0 {
		return within // a comment
	}
	name := text
	if colon < 0 {
		value.start = value.end
	} else {
		name = text[:colon]
		value.start += colon + 1
		if colon+1 < len(text) && text[colon+1] == ' ' {
			value.start++
		}
	}
	switch field := string(name); field {
	case "data", "error":
		if r.complete() {
			return before
		}
		if r.addData(value); field == "error" {
			b.noncanonical, b.errorField = true, true
		}
	case "event":
		if b.name.ok && r.complete() {
			return before
		}
		b.name = value
	case "id":
		b.id = value
	case "retry":
		b.retry = value
	default:
		b.noncanonical = true // a page of a proxy, or what a server prints, is nothing for a client (FO-10)
	}
	return within
}

// beginsBare says whether the first line of a block is a JSON value without a field name.
func (r *Reader) beginsBare(text []byte) bool {
	return (text[0] == '{' || text[0] == '[') && r.block.lines == 0 && !r.block.name.ok
}

// addData takes the value of one more data line.
func (r *Reader) addData(value place) {
	b, raw := &r.block, r.buf[r.start:]
	b.last, b.behind = value, place{}
	switch b.lines++; b.lines {
	case 1:
		b.data = value
		return
	case 2:
		b.joined = append(b.joined, b.data.of(raw)...)
	}
	b.joined = append(append(b.joined, '\n'), value.of(raw)...)
}

// complete says whether the data of the block so far is something complete, so that more data is another event.
func (r *Reader) complete() bool {
	b, raw := &r.block, r.buf[r.start:]
	if b.lines == 0 {
		return false
	}
	if b.lines == 1 && IsDone(b.data.of(raw)) {
		return true
	}
	b.value.feed(b.last.of(raw))
	b.last = place{}
	if !b.value.complete() {
		return false
	}
	b.value.other = !rawjson.Valid(b.dataOf(raw)) // and so it stays
	return !b.value.other
}

// dataOf gives the data so far.
func (b *block) dataOf(raw []byte) []byte {
	if b.lines > 1 {
		return b.joined
	}
	return b.data.of(raw)
}

// event makes the event of the current block, which ends at end, and forgets the block.
func (r *Reader) event(end int) Event {
	b, raw := &r.block, r.buf[r.start:end:end]
	e := Event{Raw: raw, Name: b.name.of(raw), ID: b.id.of(raw), Retry: b.retry.of(raw), Lines: b.lines, Noncanonical: b.noncanonical}
	e.Data = b.dataOf(raw)
	if b.errorField {
		e.Name = errorName
	}
	r.block = block{}
	return e
}

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	errorName     = []byte("error")
)

// rest makes an event of a block that the end of the stream cut off.
func (r *Reader) rest() Event {
	if r.line < len(r.buf) && r.takeLine(place{r.line, len(r.buf), true}) == before {
		return r.split()
	}
	e := r.event(len(r.buf))
	e.Cut = true
	r.start, r.line, r.scan = len(r.buf), len(r.buf), len(r.buf)
	return e
}

// fill reads once from the source. The error is that of an earlier read if everything before it was given out.
func (r *Reader) fill() error {
	if r.err == nil && len(r.buf)-r.start > r.max {
		r.err = ErrEventTooLarge
	}
	if r.err != nil {
		return r.err
	}
	r.makeRoom()
	for range 100 {
		n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		r.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}

// makeRoom moves the unfinished block to the front of the buffer, or to a larger buffer if it fills more than half of it.
func (r *Reader) makeRoom() {
	if cap(r.buf)-len(r.buf) >= firstBuffer/2 {
		return
	}
	block := r.buf[r.start:]
	to := r.buf[:0]
	if len(block) > cap(r.buf)/2 || cap(r.buf) == 0 {
		to = make([]byte, 0, max(firstBuffer, min(2*cap(r.buf), r.max+firstBuffer)))
	}
	r.buf = append(to, block...)
	r.line -= r.start
	r.scan -= r.start
	r.start = 0
}

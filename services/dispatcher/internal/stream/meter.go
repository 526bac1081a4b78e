package stream

import (
	"bytes"

	"hydrallm/shared/openai"
)

// Meter finds the usage in an answer that passes by in pieces, as JSON or as events whose data is JSON: the member "usage" of the object, the last
// one that comes. It keeps no more of the answer than that. What is no JSON has none.
type Meter struct {
	events bool
	line   int // how much of "data:" the line at hand begins with; skip for another line
	json   usageScan
	usage  []byte
}

// NewMeter makes a meter for an answer of JSON, or for one of events.
func NewMeter(events bool) *Meter { return &Meter{events: events} }

const (
	dataField = "data:"
	skip      = -1
)

// Write takes in the next piece.
func (m *Meter) Write(p []byte) {
	if !m.events {
		m.json.write(p)
		return
	}
	for len(p) > 0 {
		rest, ended := p, false
		if i := bytes.IndexAny(p, "\r\n"); i >= 0 {
			rest, p, ended = p[:i], p[i+1:], true
		} else {
			p = nil
		}
		m.take(rest)
		if ended {
			m.endLine()
		}
	}
}

// take reads a part of a line.
func (m *Meter) take(part []byte) {
	for m.line >= 0 && m.line < len(dataField) && len(part) > 0 {
		if part[0] != dataField[m.line] {
			m.line = skip
			return
		}
		m.line++
		part = part[1:]
	}
	if m.line == len(dataField) {
		m.json.write(part)
	}
}

func (m *Meter) endLine() {
	m.keep()
	m.line, m.json = 0, usageScan{value: m.json.value[:0]}
}

func (m *Meter) keep() {
	if m.json.found {
		m.usage = append(m.usage[:0], m.json.value...)
	}
}

// Usage gives what was found so far; zero for nothing.
func (m *Meter) Usage() Usage {
	m.keep()
	return openai.ParseUsage(m.usage)
}

// usageScan walks through one JSON object that comes in pieces, and keeps the value of its last member "usage". It checks no more than it needs to.
type usageScan struct {
	depth   int
	text    bool // inside a string
	escaped bool // behind a backslash in it
	object  bool // the outermost value is one
	name    bool // the next string of the object is a name
	key     []byte
	inKey   bool
	taking  bool // the value at hand is the usage
	value   []byte
	found   bool // value is whole
}

const (
	usageName    = "usage"
	maxUsageText = 8 << 10 // bytes of a usage; no known one has more than 1 KiB
)

func (s *usageScan) write(p []byte) {
	for len(p) > 0 {
		if s.text && !s.taking && !s.inKey {
			if p = s.skipText(p); len(p) == 0 {
				return
			}
		}
		c := p[0]
		p = p[1:]
		if s.taking {
			s.take(c)
		}
		if s.text {
			s.inText(c)
		} else {
			s.outside(c)
		}
	}
}

// skipText passes over what can't end the string at hand.
func (s *usageScan) skipText(p []byte) []byte {
	if s.escaped {
		s.escaped, p = false, p[1:]
	}
	if i := bytes.IndexByte(p, '"'); i >= 0 {
		if bytes.IndexByte(p[:i], '\\') < 0 {
			return p[i:]
		}
	}
	if i := bytes.IndexByte(p, '\\'); i >= 0 {
		return p[i:]
	}
	return nil
}

func (s *usageScan) inText(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.text, s.inKey = false, false
		return
	}
	if s.inKey && len(s.key) <= len(usageName) {
		s.key = append(s.key, c)
	}
}

func (s *usageScan) outside(c byte) {
	switch c {
	case '"':
		if s.text = true; s.name {
			s.name, s.inKey, s.key = false, true, s.key[:0]
		}
	case '{', '[':
		if s.depth++; s.depth == 1 {
			s.object = c == '{'
			s.name = s.object
		}
	case '}', ']':
		if s.depth--; s.depth == 0 {
			s.end()
		}
	case ',':
		if s.depth == 1 {
			s.end()
			s.name = s.object
		}
	case ':':
		if s.depth == 1 && string(s.key) == usageName && !s.taking {
			s.taking, s.value = true, s.value[:0]
		}
	}
}

// take keeps a character of the usage, unless it is the one that ends it.
func (s *usageScan) take(c byte) {
	if !s.text && s.depth == 1 && (c == ',' || c == '}') {
		return
	}
	if len(s.value) < maxUsageText {
		s.value = append(s.value, c)
	}
}

// end notes that a member has ended.
func (s *usageScan) end() {
	if s.taking {
		s.taking, s.found = false, len(s.value) < maxUsageText
	}
}

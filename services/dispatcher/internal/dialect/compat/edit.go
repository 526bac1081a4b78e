package compat

import (
	"cmp"
	"slices"
)

// edit replaces body[from:to] by text. An empty range is an insertion.
type edit struct {
	from, to int
	text     string
}

// edits are the changes to a body, in any order. One that lies inside another is void: the larger one replaces it.
type edits []edit

func (e *edits) replace(from, to int, text string) { *e = append(*e, edit{from, to, text}) }

// apply gives a copy of the body with the changes, or the body itself if there are none.
func (e edits) apply(body []byte) []byte {
	if len(e) == 0 {
		return body
	}
	size := len(body)
	for i := range e {
		size += len(e[i].text)
	}
	slices.SortStableFunc(e, func(a, b edit) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	out, pos := make([]byte, 0, size), 0
	for i := range e {
		if e[i].from < pos {
			continue
		}
		out = append(out, body[pos:e[i].from]...)
		out = append(out, e[i].text...)
		pos = e[i].to
	}
	return append(out, body[pos:]...)
}

// items removes members of an object, or elements of an array, together with the comma and the space that belong to them. All items must be
// reported in their order.
type items struct {
	end  int // of the last item that is kept
	kept bool
	lead int // number of the edit, counted from 1, that removes the items before the first that is kept; 0 = none yet
}

// keep leaves an item in.
func (c *items) keep(e *edits, start, end int) {
	if c.lead > 0 {
		(*e)[c.lead-1].to = start
		c.lead = 0
	}
	c.kept, c.end = true, end
}

// drop leaves an item out.
func (c *items) drop(e *edits, start, end int) {
	switch {
	case c.kept:
		e.replace(c.end, end, "")
		c.end = end
	case c.lead > 0:
		(*e)[c.lead-1].to = end
	default:
		e.replace(start, end, "")
		c.lead = len(*e)
	}
}

// add puts a member at the end of an object, which closes at this offset. It may be followed only by further calls of add.
func (c *items) add(e *edits, closing int, member string) {
	if c.kept {
		member = "," + member
	}
	e.replace(closing, closing, member)
	c.kept = true
}

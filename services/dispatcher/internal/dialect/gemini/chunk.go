package gemini

import (
	"bytes"
	"slices"

	"hydrallm/services/dispatcher/internal/answer"
)

var assistant, noText, null = []byte(`"assistant"`), []byte(`""`), []byte("null")

// chunk gives a chunk, to be filled.
func (e *events) chunk() *answer.Chunk {
	c := e.out.Add(answer.Piece)
	c.ID, c.Created, c.Model = e.head.ID, e.head.Created, e.head.Model
	return c
}

// piece gives the choice of a chunk, to be filled.
func (e *events) piece(c *choice) *answer.Choice {
	ch := e.chunk().Choose(c.index)
	ch.Logprobs = null
	return ch
}

// extra gives a chunk with an array that only some clients know, unless it has no elements.
func (e *events) extra(c *choice, name string, elements []byte) {
	if len(elements) > 0 {
		ch := e.piece(c)
		ch.Delta, ch.Extra = arrays(name, elements, "", nil), true
	}
}

// arrays gives an object with two arrays, without those that have no elements; nil when it is empty.
func arrays(name string, elements []byte, name2 string, elements2 []byte) (object []byte) {
	add := func(name string, elements []byte) {
		if len(elements) > 0 {
			object = append(append(append(object, `,"`...), name...), `":[`...)
			object = append(append(object, elements...), ']')
		}
	}
	add(name, elements)
	if add(name2, elements2); object == nil {
		return nil
	}
	object[0] = '{' // the comma before the first
	return append(object, '}')
}

// tellUsage gives the chunk with the usage, unless the client knows it. Events that follow the last finish reason may bring more.
func (e *events) tellUsage() {
	var grounding []byte
	if i := slices.IndexFunc(e.choices, func(c *choice) bool { return c.grounding != nil }); i >= 0 {
		grounding = e.choices[i].grounding
	}
	usage := e.usage.appendTo(nil, grounding)
	if bytes.Equal(usage, e.told) {
		return
	}
	e.told = usage
	e.chunk().Usage = usage
}

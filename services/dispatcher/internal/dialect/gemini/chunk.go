package gemini

import (
	"bytes"
	"slices"
	"strconv"

	"hydrallm/shared/openai"
)

// delta appends a chunk whose delta has one member, unless its value is empty.
func (e *events) delta(c *choice, before string, value []byte, after string) {
	if len(value) > 0 {
		e.chunk(c, "null", []byte(before), value, []byte(after))
	}
}

// chunk appends a chunk with a raw finish reason, and a delta of these members.
func (e *events) chunk(c *choice, finish string, members ...[]byte) {
	e.body = append(append(reuse(e.body), e.head...), `,"choices":[{"index":`...)
	e.body = append(strconv.AppendInt(e.body, int64(c.index), 10), `,"delta":{`...)
	for _, m := range members {
		e.body = append(e.body, m...)
	}
	e.body = append(append(append(e.body, `},"logprobs":null,"finish_reason":`...), finish...), `}]}`...)
	e.out = openai.AppendData(e.out, e.body)
}

// tellUsage appends the chunk with the usage, unless the client knows it. Events that follow the last finish reason may bring more.
func (e *events) tellUsage() {
	var grounding []byte
	if i := slices.IndexFunc(e.choices, func(c *choice) bool { return c.grounding != nil }); i >= 0 {
		grounding = e.choices[i].grounding
	}
	usage := appendUsage(nil, e.usage, grounding)
	if bytes.Equal(usage, e.told) {
		return
	}
	e.told = usage
	e.body = append(append(reuse(e.body), e.head...), `,"choices":[],"usage":`...)
	e.out = openai.AppendData(e.out, append(append(e.body, usage...), '}'))
}

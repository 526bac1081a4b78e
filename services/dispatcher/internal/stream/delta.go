package stream

import (
	"bytes"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// deltaEdit says what changes in a delta (or in the message of a whole answer).
type deltaEdit struct {
	dropRole bool

	calls     []byte // new elements of tool_calls; nil leaves the member
	dropCalls bool   // instead of calls

	setContent   bool // to Filter.split.content; an empty one is dropped unless keepContent
	keepContent  bool
	setReasoning bool // reasoning_content becomes reasoning; an empty one is dropped
	reasoning    []byte
	dropAlias    bool // the member "reasoning" is dropped
}

func (e *deltaEdit) changed() bool {
	return e.dropRole || e.calls != nil || e.dropCalls || e.setContent || e.setReasoning || e.dropAlias
}

// editText takes the think blocks out of the content, or puts its parts together, and leaves one reasoning field (R-220, R-228, THK-10). The
// answer is in f.split.
func (f *Filter) editText(edit *deltaEdit, s *splitter, ch *openai.Choice, last bool) {
	data := f.chunk.Data
	content := ch.Content.Of(data)
	var thought []byte
	switch {
	case f.uniform && isArray(content) && f.split.take(content):
		edit.setContent = true
		edit.keepContent = given(ch.Role.Of(data)) != nil
		if f.opts.Think != ThinkStrip {
			thought = f.split.reasoning
		}
	case f.opts.Think != ThinkOff && len(content) > 2 && isText(content): // another kind of content is left alone
		text := inner(content)
		if !s.plain(text) {
			s.feed(&f.split, text)
			if last {
				s.flush(&f.split)
			}
			edit.setContent = !bytes.Equal(f.split.content, text)
			edit.keepContent = given(ch.Role.Of(data)) != nil
			if f.opts.Think == ThinkSplit {
				thought = f.split.reasoning
			}
		}
	}
	stated, alias := ch.ReasoningContent.Of(data), ch.Reasoning.Of(data)
	own, other := textOf(stated), textOf(alias)
	switch {
	case len(alias) == 0:
	case len(own) == 0 || bytes.Equal(own, other): // one thought under two names is one (THK-10)
		edit.dropAlias = isText(alias) || string(alias) == "null"
		if len(own) == 0 {
			own = other
		}
	}
	if s.stated = s.stated || len(own) > 0; f.uniform && ch.Extra && !s.stated {
		thought = append(thought, s.detailed(rawjson.Get(ch.Delta.Of(data), "reasoning_details"))...)
	}
	edit.setReasoning = len(thought) > 0 || !bytes.Equal(own, textOf(stated)) || len(own) == 0 && len(stated) > 0 && edit.setContent
	if edit.setReasoning {
		edit.reasoning = append(bytes.Clone(own), thought...)
	}
}

func isText(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// textOf is the inner part of a raw string, nil for anything else.
func textOf(raw []byte) []byte {
	if isText(raw) {
		return inner(raw)
	}
	return nil
}

// appendEdited appends a delta with the changes. Members that do not change keep their bytes and their order.
func (f *Filter) appendEdited(dst, delta []byte, edit *deltaEdit) []byte {
	if len(delta) == 0 || delta[0] != '{' {
		return append(dst, "{}"...)
	}
	c := rawjson.Copy(dst, delta)
	hasReasoning := false
	for m := range rawjson.Members(delta) {
		keep, value := true, []byte(nil)
		switch string(m.Name()) {
		case "role":
			keep = !edit.dropRole
		case "tool_calls":
			keep = !edit.dropCalls
			if edit.calls != nil {
				value = append(append([]byte{'['}, edit.calls...), ']')
			}
		case "content":
			if edit.setContent {
				keep = len(f.split.content) > 0 || edit.keepContent
				value = quoted(f.split.content)
			}
		case "reasoning_content":
			hasReasoning = true
			if edit.setReasoning {
				keep = len(edit.reasoning) > 0
				value = quoted(edit.reasoning)
			}
		case "reasoning":
			keep = !edit.dropAlias
		}
		c.Member(m.Key.Start, m.Value.End, keep)
		if keep && value != nil {
			out := c.Edit(m.Value.Start, m.Value.End)
			*out = append(*out, value...)
		}
	}
	if edit.setReasoning && !hasReasoning && len(edit.reasoning) > 0 {
		c.Add([]byte(`"reasoning_content":`), quoted(edit.reasoning))
	}
	return c.End()
}

// quoted makes a raw string of its inner part.
func quoted(inner []byte) []byte {
	out := make([]byte, 0, len(inner)+2)
	return append(append(append(out, '"'), inner...), '"')
}

package compat

import (
	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Where requests have names of functions, below the members that are named first; "" stands for each element of an array.
var (
	toolNames   = []string{"", "function", "name"}
	choiceNames = []string{"function", "name"}
	choosable   = []string{"allowed_tools", "tools", "", "function", "name"}
	callNames   = []string{"tool_calls", "", "function", "name"}
)

// naming gives the functions of a request names that Google takes.
type naming struct {
	body    []byte
	edits   *edits
	renamed bool
}

// walk renames what is found at a path in a value.
func (n *naming) walk(value rawjson.Span, path []string) {
	raw := value.Of(n.body)
	switch {
	case len(path) == 0:
		n.rename(value)
	case path[0] == "":
		for span := range rawjson.Elements(raw) {
			n.walk(rawjson.Span{Start: value.Start + span.Start, End: value.Start + span.End}, path[1:])
		}
	default:
		for m := range rawjson.Members(raw) {
			if string(m.Name()) == path[0] {
				n.walk(rawjson.Span{Start: value.Start + m.Value.Start, End: value.Start + m.Value.End}, path[1:])
			}
		}
	}
}

func (n *naming) rename(value rawjson.Span) {
	raw := value.Of(n.body)
	if !answer.IsText(raw) {
		return
	}
	name := rawjson.Text(raw)
	if native := gemini.NativeName(name); native != name {
		n.edits.replace(value.Start, value.End, string(rawjson.AppendString(nil, native)))
		n.renamed = true
	}
}

// messages renames the calls of the conversation, and the results that say whose they are.
func (n *naming) messages(array rawjson.Span) {
	for span := range rawjson.Elements(array.Of(n.body)) {
		message := rawjson.Span{Start: array.Start + span.Start, End: array.Start + span.End}
		n.walk(message, callNames)
		if roleOf(roleSpan(n.body, message).Of(n.body)) == toolRole {
			n.walk(message, []string{"name"})
		}
	}
}

// restoreNames has an answer call functions by the names that the client gave them.
func restoreNames(resp *dialect.Response) {
	source, completion := resp.Events, resp.Completion
	resp.Events = func(r *openai.Reader) answer.Source {
		if source == nil {
			return renamed{answer.NewReader(r)}
		}
		return renamed{source(r)}
	}
	resp.Completion = func(out *answer.Chunk, body []byte) bool {
		translated := completion != nil && completion(out, body)
		if !translated {
			out.Parse(body)
		}
		return clientNames(out) && out.Error == nil || translated
	}
}

// renamed passes the events of a source on, with the names of the client.
type renamed struct{ answer.Source }

// Next passes the next event on.
func (s renamed) Next() (*answer.Chunk, error) {
	c, err := s.Source.Next()
	if err == nil {
		clientNames(c)
	}
	return c, err
}

// clientNames renames the calls of a chunk; the answer is whether there were any to rename.
func clientNames(c *answer.Chunk) (changed bool) {
	for i := range c.Choices {
		ch := &c.Choices[i]
		for k := range ch.Calls {
			call := &ch.Calls[k]
			name := rawjson.Text(call.Name)
			client := gemini.ClientName(name)
			if client == name {
				continue
			}
			call.Name = rawjson.AppendString(nil, client)
			call.Tool = rawjson.AppendSet(nil, call.Tool, "name", call.Name)
			call.Raw = rawjson.AppendSet(nil, call.Raw, "function", call.Tool)
			ch.ToolCalls, ch.Edited, c.Edited, changed = nil, true, true, true
		}
	}
	return changed
}

package answer

import "bytes"

// Clone gives a copy that shares no memory with c.
func (c *Chunk) Clone() *Chunk {
	out := &Chunk{}
	if c.Data != nil && !c.edited() {
		out.Raw = bytes.Clone(c.Raw)
		raw, data := out.Raw, bytes.Clone(c.Data)
		if i := bytes.Index(raw, data); i >= 0 {
			data = raw[i : i+len(data)]
		}
		out.Parse(data)
		out.Kind, out.Raw = c.Kind, raw
		return out
	}
	*out = *c
	out.calls = nil
	for _, value := range []*[]byte{&out.Raw, &out.Data, &out.Error, &out.Usage, &out.ID, &out.Created, &out.Model} {
		*value = bytes.Clone(*value)
	}
	out.Choices = make([]Choice, len(c.Choices))
	for i := range c.Choices {
		out.Choices[i] = c.Choices[i].clone()
	}
	return out
}

// edited says whether anything is no longer what Data says.
func (c *Chunk) edited() bool {
	for i := range c.Choices {
		if c.Choices[i].Edited {
			return true
		}
	}
	return c.Edited
}

func (ch *Choice) clone() Choice {
	out := *ch
	for _, value := range []*[]byte{
		&out.Raw, &out.Delta, &out.Role, &out.Content, &out.Refusal, &out.FunctionCall, &out.ReasoningContent, &out.Reasoning, &out.ToolCalls,
		&out.Finish, &out.Logprobs,
	} {
		*value = bytes.Clone(*value)
	}
	out.Calls = nil
	for i := range ch.Calls {
		call := ch.Calls[i]
		for _, value := range []*[]byte{&call.Raw, &call.ID, &call.Type, &call.Name, &call.Args, &call.Tool, &call.Others, &call.ToolOthers} {
			*value = bytes.Clone(*value)
		}
		out.Calls = append(out.Calls, call)
	}
	return out
}

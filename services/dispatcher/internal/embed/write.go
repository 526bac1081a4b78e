package embed

import (
	"strconv"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// write appends the answer for the client.
func (a *answer) write(dst []byte, f format, model string) ([]byte, error) {
	if model != "" {
		a.model = rawjson.AppendString(nil, model)
	}
	if a.native {
		return a.writeNew(dst, f)
	}
	c := rawjson.Copy(dst, a.body)
	hasObject, hasModel := false, a.model == nil
	var err error
	for m := range rawjson.Members(a.body) {
		c.Member(m.Key.Start, m.Value.End, true)
		switch string(m.Name()) {
		case "object":
			out := c.Edit(m.Value.Start, m.Value.End)
			*out = append(*out, `"list"`...)
			hasObject = true
		case "data":
			out := c.Edit(m.Value.Start, m.Value.End)
			if *out, err = a.appendEntries(*out, f); err != nil {
				return nil, err
			}
		case "model":
			if a.model != nil {
				out := c.Edit(m.Value.Start, m.Value.End)
				*out = append(*out, a.model...)
			}
			hasModel = true
		}
	}
	if !hasObject {
		c.Add([]byte(`"object":"list"`))
	}
	if !hasModel {
		c.Add([]byte(`"model":`), a.model)
	}
	return c.End(), nil
}

// writeNew appends a list of OpenAI's.
func (a *answer) writeNew(dst []byte, f format) ([]byte, error) {
	dst, err := a.appendEntries(append(dst, `{"object":"list","data":`...), f)
	if err != nil {
		return nil, err
	}
	if a.model != nil {
		dst = append(append(dst, `,"model":`...), a.model...)
	}
	return append(appendUsage(dst, a.usage), '}'), nil
}

// appendUsage appends a further member with the usage, if there is one.
func appendUsage(dst []byte, u openai.Usage) []byte {
	if u.Total == 0 {
		return dst
	}
	dst = strconv.AppendInt(append(dst, `,"usage":{"prompt_tokens":`...), u.Prompt, 10)
	return append(strconv.AppendInt(append(dst, `,"total_tokens":`...), u.Total, 10), '}')
}

func (a *answer) appendEntries(dst []byte, f format) ([]byte, error) {
	dst = append(dst, '[')
	var v vectors
	for i := range a.entries {
		e := &a.entries[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = e.append(dst, &v, f); err != nil {
			return nil, err
		}
		if len(dst) > maxAnswer {
			return nil, unusable("it is larger than %d bytes in the format of the client", maxAnswer)
		}
	}
	return append(dst, ']'), nil
}

// append writes an entry: as it came, or with the usual members first and the others after them.
func (e *entry) append(dst []byte, v *vectors, f format) ([]byte, error) {
	if e.plain && f.fits(e.vector) {
		return append(dst, e.object...), v.check(e.vector)
	}
	dst = strconv.AppendInt(append(dst, `{"object":"embedding","index":`...), int64(e.index), 10)
	dst, err := v.append(append(dst, `,"embedding":`...), e.vector, f)
	if err != nil {
		return nil, err
	}
	for m := range rawjson.Members(e.object) {
		switch string(m.Name()) {
		case "object", "index", "embedding":
		default:
			dst = append(append(dst, ','), e.object[m.Key.Start:m.Value.End]...)
		}
	}
	return append(dst, '}'), nil
}

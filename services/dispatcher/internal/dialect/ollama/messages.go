package ollama

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// messages is a list of messages being translated.
type messages struct {
	out   []byte
	names map[string]string // of the functions called, as JSON strings, by the id of the call
}

func appendMessages(dst []byte, list gjson.Result) ([]byte, error) {
	if !list.IsArray() {
		return nil, &openai.RequestError{Message: "'messages' must be an array.", Param: "messages", Code: openai.CodeInvalidType}
	}
	ms := messages{out: append(dst, '['), names: map[string]string{}}
	for i, m := range list.Array() {
		if i > 0 {
			ms.out = append(ms.out, ',')
		}
		if err := ms.add(m, fmt.Sprintf("messages[%d]", i)); err != nil {
			return nil, err
		}
	}
	return append(ms.out, ']'), nil
}

// add translates one message; at is its place for errors.
func (ms *messages) add(m gjson.Result, at string) error {
	if !m.IsObject() {
		return &openai.RequestError{Message: "'" + at + "' must be an object.", Param: at, Code: openai.CodeInvalidType}
	}
	role := m.Get("role").Str
	switch role {
	case "developer":
		role = "system"
	case "function":
		role = "tool"
	}
	c, err := readContent(m.Get("content"), at+".content")
	if err != nil {
		return err
	}
	ms.out = rawjson.AppendString(append(ms.out, `{"role":`...), role)
	ms.out = append(append(append(ms.out, `,"content":"`...), c.text...), '"')
	if len(c.images) > 0 {
		ms.out = append(append(append(ms.out, `,"images":["`...), strings.Join(c.images, `","`)...), `"]`...)
	}
	for _, name := range [...]string{"reasoning_content", "reasoning"} {
		if thought := m.Get(name); thought.Type == gjson.String && thought.Str != "" {
			ms.out = append(append(ms.out, `,"thinking":`...), thought.Raw...)
			break
		}
	}
	if role == "tool" {
		ms.addResult(m)
	}
	if err := ms.addCalls(m, at); err != nil {
		return err
	}
	ms.out = append(ms.out, '}')
	return nil
}

// addResult says which call a message is the result of.
func (ms *messages) addResult(m gjson.Result) {
	id, name := m.Get("tool_call_id"), m.Get("name").Raw
	if m.Get("name").Str == "" {
		name = ms.names[id.Str]
	}
	if name != "" {
		ms.out = append(append(ms.out, `,"tool_name":`...), name...)
	}
	if id.Type == gjson.String {
		ms.out = append(append(ms.out, `,"tool_call_id":`...), id.Raw...)
	}
}

// addCalls translates the calls of an assistant's message, also one of the old form.
func (ms *messages) addCalls(m gjson.Result, at string) error {
	n := 0
	add := func(function, id gjson.Result, at string) error {
		args, err := arguments(function.Get("arguments"), at+".arguments")
		if err != nil {
			return err
		}
		ms.out = append(ms.out, [...]string{`,"tool_calls":[{`, `,{`}[min(n, 1)]...)
		n++
		if id.Type == gjson.String && id.Str != "" {
			ms.out = append(append(append(ms.out, `"id":`...), id.Raw...), ',')
		}
		name := string(orEmpty([]byte(function.Get("name").Raw)))
		ms.names[id.Str] = name
		ms.out = append(append(ms.out, `"function":{"name":`...), name...)
		ms.out = append(append(append(ms.out, `,"arguments":`...), args...), `}}`...)
		return nil
	}
	for i, call := range m.Get("tool_calls").Array() {
		at := fmt.Sprintf("%s.tool_calls[%d].function", at, i)
		if !call.IsObject() || !call.Get("function").IsObject() {
			return &openai.RequestError{Message: "'" + at + "' must be an object: Ollama knows no other tools.", Param: at, Code: openai.CodeInvalidType}
		}
		if err := add(call.Get("function"), call.Get("id"), at); err != nil {
			return err
		}
	}
	if old := m.Get("function_call"); old.IsObject() && n == 0 {
		if err := add(old, gjson.Result{}, at+".function_call"); err != nil {
			return err
		}
	}
	if n > 0 {
		ms.out = append(ms.out, ']')
	}
	return nil
}

// arguments gives the object inside a string of arguments; none at all count as empty ones.
func arguments(v gjson.Result, at string) (string, error) {
	text := v.Raw
	if v.Type == gjson.String {
		text = strings.TrimSpace(v.Str)
	}
	if text == "" || text == "null" {
		return "{}", nil
	}
	if text[0] != '{' || !rawjson.Valid([]byte(text)) {
		return "", &openai.RequestError{Message: "'" + at + "' must be a JSON object in a string.", Param: at, Code: openai.CodeInvalidValue}
	}
	return text, nil
}

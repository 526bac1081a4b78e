package prompt

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

const (
	userLabel      = "User"
	assistantLabel = "Assistant"
)

// reader is a Prompt while it is being read.
type reader struct {
	Prompt
	calls map[string]string // names of the tools that were called, by the id of the call
}

func (r *reader) message(i int, m gjson.Result) error {
	param := fmt.Sprintf("messages[%d].content", i)
	text, err := r.content(param, m.Get("content"))
	if err != nil {
		return err
	}
	switch role := m.Get("role").Str; role {
	case "system", "developer":
		r.System = paragraphs(r.System, text)
	case "assistant":
		text = paragraphs(text, m.Get("refusal").Str)
		for _, call := range m.Get("tool_calls").Array() {
			name := callName(call)
			r.calls[call.Get("id").Str] = name
			text = paragraphs(text, "(called the tool "+name+" with "+callArguments(call)+")")
		}
		if call := m.Get("function_call"); call.IsObject() {
			text = paragraphs(text, "(called the tool "+call.Get("name").Str+" with "+call.Get("arguments").Str+")")
		}
		r.add(named(assistantLabel, m), text)
	case "tool":
		r.add("Result of the tool "+r.calls[m.Get("tool_call_id").Str], text)
	case "function":
		r.add("Result of the tool "+m.Get("name").Str, text)
	default:
		r.add(named(userLabel, m), text)
	}
	return nil
}

// callName is the name of a tool that is a function or has a free form.
func callName(call gjson.Result) string {
	if f := call.Get("function"); f.Exists() {
		return f.Get("name").Str
	}
	return call.Get("custom.name").Str
}

func callArguments(call gjson.Result) string {
	if f := call.Get("function"); f.Exists() {
		return f.Get("arguments").String()
	}
	return call.Get("custom.input").String()
}

func (r *reader) add(label, text string) {
	r.turns = append(r.turns, turn{strings.TrimSpace(label), text})
}

// named is a label with the name of whoever speaks.
func named(label string, m gjson.Result) string { return label + " " + m.Get("name").Str }

func paragraphs(texts ...string) string {
	var b strings.Builder
	for _, t := range texts {
		if t == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(t)
	}
	return b.String()
}

package prompt

import (
	"strings"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai"
)

// Prompt is a request to Chat Completions as an agent can take it.
type Prompt struct {
	Model  string // as the request names it
	System string // the instructions; "" for none
	Files  []File // in the order in which the conversation shows them

	turns []turn
}

// File is something that a message shows.
type File struct {
	Type string // MIME type
	Name string
	URL  string // a data URL
}

// turn is what one message says.
type turn struct{ label, text string }

// Read reads the body of a request. Members that say how to choose words (temperature and the like) have no counterpart, and tools of the
// client neither: an agent that may decide for itself whether to call one just answers. What would change the meaning of the answer is an
// *openai.RequestError.
func Read(body []byte) (Prompt, error) {
	if !gjson.ValidBytes(body) {
		return Prompt{}, &openai.RequestError{Message: "The request body is not valid JSON.", Code: openai.CodeInvalidJSON}
	}
	root := gjson.ParseBytes(body)
	if choice := root.Get("tool_choice"); choice.IsObject() || choice.Str == "required" {
		return Prompt{}, unsupported("tool_choice", "An agent calls no tools of the client, so 'tool_choice' can't demand it.")
	}
	r := reader{Prompt: Prompt{Model: root.Get("model").Str}, calls: map[string]string{}}
	messages := root.Get("messages")
	if !messages.IsArray() {
		r.turns = []turn{{userLabel, root.Get("prompt").String()}}
		return r.Prompt, nil
	}
	for i, m := range messages.Array() {
		if err := r.message(i, m); err != nil {
			return Prompt{}, err
		}
	}
	return r.Prompt, nil
}

func unsupported(param, message string) error {
	return &openai.RequestError{Message: message, Param: param, Code: openai.CodeInvalidValue}
}

// Text is the conversation without the instructions. A lone question is left as it is.
func (p Prompt) Text() string {
	if len(p.turns) == 1 && p.turns[0].label == userLabel {
		return p.turns[0].text
	}
	return join(p.turns)
}

// Whole is the conversation with the instructions, for an agent that has no place of its own for them.
func (p Prompt) Whole() string {
	if p.System == "" {
		return p.Text()
	}
	return join(append([]turn{{"Instructions", p.System}}, p.turns...))
}

func join(turns []turn) string {
	var b strings.Builder
	b.WriteString("This is a conversation so far, its oldest message first.\n\n")
	for _, t := range turns {
		b.WriteString("[" + t.label + "]\n" + t.text + "\n\n")
	}
	if len(turns) > 0 && strings.HasPrefix(turns[len(turns)-1].label, assistantLabel) {
		b.WriteString("Go on with the last message of the assistant where it ends. Say nothing else.")
	} else {
		b.WriteString("Write the next message of the assistant, and nothing else.")
	}
	return b.String()
}

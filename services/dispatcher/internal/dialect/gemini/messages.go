package gemini

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai/rawjson"
)

// content is one turn of a conversation.
type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// part is one part of a turn. It has one of its members, and maybe the signature of the thoughts that led to it.
type part struct {
	Text             string            `json:"text,omitempty"`
	InlineData       *blob             `json:"inlineData,omitempty"`
	FileData         *file             `json:"fileData,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type functionResponse struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
}

const (
	roleUser  = "user"
	roleModel = "model"
)

// bypass is the documented signature for a call that the model did not make itself, or whose signature a client has dropped. Without any
// signature on the first call of a step, thinking models refuse the whole conversation.
const bypass = "skip_thought_signature_validator"

// conversation is the messages of a request while they are translated.
type conversation struct {
	contents []content
	system   []string
	names    map[string][]string // of the functions that were called last, by the id of the calls, which may share one
}

func (r *request) messages() error {
	c := conversation{names: map[string][]string{}}
	for i, m := range r.members["messages"].Array() {
		if err := c.message("messages["+strconv.Itoa(i)+"]", m); err != nil {
			return err
		}
	}
	if r.family.signs() {
		c.sign()
	}
	if len(c.system) == 0 && len(c.contents) == 0 {
		return refuse("messages", "hold nothing that a model could answer")
	}
	if len(c.system) > 0 {
		instruction := part{Text: strings.Join(c.system, "\n\n")}
		if len(c.contents) > 0 && r.family.Instructed() {
			r.native.SystemInstruction = &content{Parts: []part{instruction}}
		} else { // Gemini wants at least one turn
			c.begin(instruction)
		}
	}
	if c.contents[0].Role != roleUser { // a model can't speak, or call a function, before the user does
		c.begin(part{Text: "."})
	}
	r.native.Contents = c.contents
	return nil
}

// begin puts a part of the user before all others.
func (c *conversation) begin(p part) {
	if len(c.contents) == 0 || c.contents[0].Role != roleUser {
		c.contents = slices.Insert(c.contents, 0, content{Role: roleUser})
	}
	c.contents[0].Parts = slices.Insert(c.contents[0].Parts, 0, p)
}

func (c *conversation) message(path string, m gjson.Result) error {
	role := m.Get("role").Str
	switch role {
	case "system", "developer", "user", "assistant", "tool", "function":
	default:
		return refuse(path+".role", "is a role that this model does not know: "+quote(role))
	}
	parts, err := readParts(path+".content", m.Get("content"))
	if err != nil {
		return err
	}
	switch role {
	case "system", "developer":
		return c.instruction(path, parts)
	case "user":
		c.add(roleUser, parts...)
		return nil
	case "assistant":
		return c.assistant(path, m, parts)
	}
	return c.result(path, m, parts)
}

// add appends parts to the conversation. Turns of one side that follow each other become one.
func (c *conversation) add(role string, parts ...part) {
	if len(parts) == 0 {
		return
	}
	if n := len(c.contents); n > 0 && c.contents[n-1].Role == role {
		c.contents[n-1].Parts = append(c.contents[n-1].Parts, parts...)
		return
	}
	c.contents = append(c.contents, content{Role: role, Parts: parts})
}

func (c *conversation) instruction(path string, parts []part) error {
	text, media := split(parts)
	if len(media) > 0 {
		return refuse(path+".content", "of an instruction can only be text")
	}
	if text != "" {
		c.system = append(c.system, text)
	}
	return nil
}

// split gives the texts of a content, joined, and the rest.
func split(parts []part) (text string, media []part) {
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		} else {
			media = append(media, p)
		}
	}
	return strings.Join(texts, "\n"), media
}

func (c *conversation) assistant(path string, m gjson.Result, parts []part) error {
	if refusal := m.Get("refusal").Str; refusal != "" {
		parts = append(parts, part{Text: refusal})
	}
	calls := m.Get("tool_calls").Array()
	for _, call := range calls {
		delete(c.names, call.Get("id").Str)
	}
	for i, call := range calls {
		at := path + ".tool_calls[" + strconv.Itoa(i) + "]"
		if !call.Get("function").IsObject() {
			return refuse(at, "must be the call of a function")
		}
		p, err := c.call(at+".function", call.Get("function"), call.Get("id").Str)
		if err != nil {
			return err
		}
		p.ThoughtSignature = call.Get("extra_content.google.thought_signature").Str
		parts = append(parts, p)
	}
	if call := m.Get("function_call"); call.IsObject() { // the form before tool calls
		p, err := c.call(path+".function_call", call, "")
		if err != nil {
			return err
		}
		parts = append(parts, p)
	}
	c.add(roleModel, parts...)
	return nil
}

func (c *conversation) call(path string, function gjson.Result, id string) (part, error) {
	name := function.Get("name").Str
	if name == "" {
		return part{}, refuse(path+".name", "must be the name of a function")
	}
	if id != "" {
		c.names[id] = append(c.names[id], name)
	}
	return part{FunctionCall: &functionCall{ID: id, Name: NativeName(name), Args: arguments(function.Get("arguments"))}}, nil
}

// arguments gives the arguments of a call as an object. A model may have made a text that is none; it is kept for the model to see.
func arguments(v gjson.Result) json.RawMessage {
	text := strings.TrimSpace(v.String())
	switch {
	case text == "":
		return json.RawMessage("{}")
	case text[0] == '{' && rawjson.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return wrap("arguments", rawjson.AppendString(nil, text))
}

func wrap(name string, value []byte) json.RawMessage {
	out := append(rawjson.AppendString([]byte{'{'}, name), ':')
	return append(append(out, value...), '}')
}

// result translates what a tool gave back. Media follow it, because a result is an object.
func (c *conversation) result(path string, m gjson.Result, parts []part) error {
	id := m.Get("tool_call_id").Str
	name := m.Get("name").Str
	if called := c.names[id]; len(called) > 0 {
		if name = called[0]; len(called) > 1 {
			c.names[id] = called[1:]
		}
	}
	if name == "" {
		return refuse(path+".tool_call_id", "is the id of no tool call before this message")
	}
	text, media := split(parts)
	answer := part{FunctionResponse: &functionResponse{ID: id, Name: NativeName(name), Response: resultObject(text)}}
	c.add(roleUser, append([]part{answer}, media...)...)
	return nil
}

func resultObject(text string) json.RawMessage {
	value := []byte(strings.TrimSpace(text))
	if len(value) > 0 && rawjson.Valid(value) {
		switch value[0] {
		case '{':
			return value
		case '[':
			return wrap("result", value)
		}
	}
	return wrap("result", rawjson.AppendString(nil, text))
}

// sign gives each turn of the model whose first call has no signature the one that stands for that.
func (c *conversation) sign() {
	for _, turn := range c.contents {
		for i := range turn.Parts {
			if p := &turn.Parts[i]; p.FunctionCall != nil {
				if p.ThoughtSignature == "" {
					p.ThoughtSignature = bypass
				}
				break
			}
		}
	}
}

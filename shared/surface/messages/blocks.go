package messages

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// place is that of a message, as errors name it.
func place(n int) string { return "messages." + strconv.Itoa(n) }

// message is one of Messages as Chat Completions has it: results of tools, and what is said beside them.
type message struct {
	role    string
	lenient bool     // a block that the hub has no words for becomes a text that names it
	calls   []string // ids of the calls that an assistant makes
	results []result
	parts   [][]byte // of a user: what follows the results
	plain   []byte   // content, where that is no array of parts
	body    []byte   // of an assistant or the system; nil when nothing is left
	thought []byte   // what an assistant thought, without a signature; an inner part of a string
}

// result is that of a tool.
type result struct {
	call  string // id
	place string
	body  []byte // the message
}

// said gives what is said beside the results; nil when that is nothing.
func (m *message) said() []byte {
	switch {
	case m.role != roleUser:
		return m.body
	case m.plain != nil:
		return rawjson.Object(nil).Text("role", roleUser).Set("content", m.plain).End()
	case len(m.parts) == 0:
		return nil
	}
	return rawjson.Object(nil).Text("role", roleUser).Set("content", rawjson.Array(m.parts)).End()
}

// all gives everything, in order.
func (m *message) all() (list [][]byte) {
	for i := range m.results {
		list = append(list, m.results[i].body)
	}
	if said := m.said(); said != nil {
		list = append(list, said)
	}
	return list
}

// readMessage translates one message. The error is an *openai.RequestError.
func readMessage(at string, raw []byte) (*message, error) {
	return read(at, raw, false)
}

// readLeniently does it for a history, which keeps the original: the provider that gets it may know blocks that the hub has no words for.
func readLeniently(at string, raw []byte) (*message, error) {
	return read(at, raw, true)
}

func read(at string, raw []byte, lenient bool) (*message, error) {
	in := rawjson.Given(raw)
	m := &message{role: rawjson.Text(in["role"]), lenient: lenient}
	content := in["content"]
	at += ".content"
	switch m.role {
	case roleUser:
		return m, m.user(at, content)
	case roleAssistant:
		return m, m.assistant(at, content)
	}
	if text := textOf(content); text != "" {
		m.body = rawjson.Object(nil).Text("role", roleSystem).Text("content", text).End()
	}
	return m, nil
}

// textOf gives the text of a string or of the text blocks of an array, with an empty line between them.
func textOf(content []byte) string {
	if len(content) == 0 || content[0] != '[' {
		return rawjson.Text(content)
	}
	var texts []string
	for _, b := range elements(content) {
		if text := rawjson.Text(rawjson.Get(b, "text")); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

func (m *message) user(at string, content []byte) error {
	if isString(content) {
		m.plain = content
		return nil
	}
	var pictures [][]byte // of results: tools give only text in Chat Completions
	for n, raw := range elements(content) {
		b, at := rawjson.Given(raw), at+"."+strconv.Itoa(n)
		if rawjson.Is(b["type"], "tool_result") {
			r, more, err := m.result(at, b)
			if err != nil {
				return err
			}
			m.results = append(m.results, r)
			pictures = append(pictures, more...)
			continue
		}
		parts, err := m.part(at, b)
		if err != nil {
			return err
		}
		m.parts = append(m.parts, parts...)
	}
	m.parts = append(pictures, m.parts...)
	return nil
}

// part translates a block of the user, or of a result.
func (m *message) part(at string, b map[string][]byte) ([][]byte, error) {
	parts, err := userPart(at, b)
	if bad, ok := errors.AsType[*openai.RequestError](err); ok && m.lenient && bad.Code == openai.CodeInvalidValue {
		return [][]byte{textPart(rawjson.AppendString(nil, "["+rawjson.Text(b["type"])+"]"))}, nil
	}
	return parts, err
}

// userPart translates a block of the user; it may become several parts, or none.
func userPart(at string, b map[string][]byte) ([][]byte, error) {
	switch kind := rawjson.Text(b["type"]); kind {
	case "text":
		if !isString(b["text"]) {
			return nil, refuse(openai.CodeMissing, at+".text", "Field required")
		}
		if len(b["text"]) == len(`""`) {
			return nil, nil
		}
		return [][]byte{textPart(b["text"])}, nil
	case "image":
		part, err := image(at, rawjson.Given(b["source"]))
		return [][]byte{part}, err
	case "document":
		return document(at, b)
	case "search_result":
		text := textOf(b["content"])
		if title := rawjson.Text(b["title"]); title != "" {
			text = title + "\n" + text
		}
		return [][]byte{textPart(rawjson.AppendString(nil, text))}, nil
	default:
		return nil, unknown(at, kind)
	}
}

// unknown refuses a block that the hub has no words for.
func unknown(at, kind string) error {
	return refuse(openai.CodeInvalidValue, at+".type", "a block of the type %s can't be sent to the provider of this model", strconv.Quote(kind))
}

func textPart(text []byte) []byte { return typed("text").Set("text", text).End() }

func image(at string, source map[string][]byte) ([]byte, error) {
	url := source["url"]
	switch kind := rawjson.Text(source["type"]); kind {
	case "base64":
		if !isString(source["media_type"]) || !isString(source["data"]) {
			return nil, refuse(openai.CodeMissing, at+".source", "media_type and data are required")
		}
		url = dataURI(inner(source["media_type"]), inner(source["data"]))
	case "url":
		if !isString(url) {
			return nil, refuse(openai.CodeMissing, at+".source.url", "Field required")
		}
	default:
		return nil, refuse(openai.CodeInvalidValue, at+".source.type", "images of the source %s can't be sent to the provider of this model", strconv.Quote(kind))
	}
	return typed("image_url").Set("image_url", rawjson.Object(nil).Set("url", url).End()).End(), nil
}

// dataURI gives the raw string of a data URI. Its parts are the inner parts of strings.
func dataURI(media, data []byte) []byte {
	out := make([]byte, 0, len(media)+len(data)+len(`"data:;base64,"`))
	out = append(append(append(out, `"data:`...), media...), ";base64,"...)
	return append(append(out, data...), '"')
}

// document translates one that is text. Others can't be read by most models: they are refused by name, not left out.
func document(at string, b map[string][]byte) ([][]byte, error) {
	source := rawjson.Given(b["source"])
	var parts [][]byte
	if title := b["title"]; isString(title) && len(title) > len(`""`) {
		parts = append(parts, textPart(title))
	}
	switch kind := rawjson.Text(source["type"]); kind {
	case "text":
		if !isString(source["data"]) {
			return nil, refuse(openai.CodeMissing, at+".source.data", "Field required")
		}
		return append(parts, textPart(source["data"])), nil
	case "content":
		content := source["content"]
		if isString(content) {
			return append(parts, textPart(content)), nil
		}
		for n, raw := range elements(content) {
			more, err := userPart(at+".source.content."+strconv.Itoa(n), rawjson.Given(raw))
			if err != nil {
				return nil, err
			}
			parts = append(parts, more...)
		}
		return parts, nil
	default:
		what := rawjson.Text(source["media_type"])
		if what == "" {
			what = "of the source " + strconv.Quote(kind)
		}
		return nil, refuse(openai.CodeInvalidValue, at+".source", "documents %s can't be sent to the provider of this model: send their text", what)
	}
}

// result translates what a tool gave back, and gives the images of it apart. That it is an error is told in its words only.
func (m *message) result(at string, b map[string][]byte) (r result, pictures [][]byte, err error) {
	id := b["tool_use_id"]
	if len(inner(id)) == 0 {
		return r, nil, refuse(openai.CodeMissing, at+".tool_use_id", "Field required")
	}
	content := b["content"]
	if len(content) > 0 && content[0] == '[' {
		var texts []string
		for n, raw := range elements(content) {
			parts, err := m.part(at+".content."+strconv.Itoa(n), rawjson.Given(raw))
			if err != nil {
				return r, nil, err
			}
			for _, part := range parts {
				if text := rawjson.Get(part, "text"); text != nil {
					texts = append(texts, rawjson.Text(text))
				} else {
					pictures = append(pictures, part)
				}
			}
		}
		content = rawjson.AppendString(nil, strings.Join(texts, "\n"))
	} else if !isString(content) {
		content = []byte(`""`)
	}
	body := rawjson.Object(nil).Text("role", "tool").Set("tool_call_id", id).Set("content", content).End()
	return result{call: rawjson.Text(id), place: at, body: body}, pictures, nil
}

// served are the blocks of what Anthropic's own tools did, which other providers know nothing of.
func served(kind string) bool {
	switch kind {
	case "server_tool_use", "mcp_tool_use", "container_upload", "compaction":
		return true
	}
	return kind != "tool_result" && strings.HasSuffix(kind, "_tool_result")
}

func (m *message) assistant(at string, content []byte) error {
	if isString(content) {
		m.body = rawjson.Object(nil).Text("role", roleAssistant).Set("content", content).End()
		return nil
	}
	var said, calls []byte
	for n, raw := range elements(content) {
		b, at := rawjson.Given(raw), at+"."+strconv.Itoa(n)
		switch kind := rawjson.Text(b["type"]); {
		case kind == "text":
			said = append(said, inner(b["text"])...)
		case kind == "tool_use":
			call, err := m.call(at, b)
			if err != nil {
				return err
			}
			calls = append(append(calls, ','), call...)
		case kind == "thinking":
			if len(inner(b["signature"])) == 0 {
				m.thought = append(m.thought, inner(b["thinking"])...)
			}
		case kind == "redacted_thinking", served(kind), m.lenient && kind != "":
		default:
			return unknown(at, kind)
		}
	}
	if len(said) == 0 && len(calls) == 0 {
		return nil
	}
	out := rawjson.Object(nil).Text("role", roleAssistant)
	if len(said) > 0 {
		out = out.Set("content", quoted(said))
	} else {
		out = out.Set("content", []byte("null"))
	}
	if len(calls) > 0 {
		calls[0] = '['
		out = out.Set("tool_calls", append(calls, ']'))
	}
	m.body = out.End()
	return nil
}

// call translates a call of a tool. Numbers of its input stay as they are written.
func (m *message) call(at string, b map[string][]byte) ([]byte, error) {
	id, name, input := b["id"], b["name"], b["input"]
	switch {
	case len(inner(id)) == 0:
		return nil, refuse(openai.CodeMissing, at+".id", "Field required")
	case len(inner(name)) == 0:
		return nil, refuse(openai.CodeMissing, at+".name", "Field required")
	case len(input) > 0 && input[0] != '{':
		return nil, refuse(openai.CodeInvalidType, at+".input", "Input should be an object")
	}
	m.calls = append(m.calls, rawjson.Text(id))
	arguments := []byte("{}")
	if len(input) > 0 {
		var compact bytes.Buffer
		if json.Compact(&compact, input) == nil {
			arguments = compact.Bytes()
		}
	}
	function := rawjson.Object(nil).Set("name", name).Set("arguments", rawjson.AppendString(nil, arguments)).End()
	return rawjson.Object(nil).Set("id", id).Text("type", "function").Set("function", function).End(), nil
}

func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// inner is a raw string without its quotes; nil for anything else.
func inner(raw []byte) []byte {
	if !isString(raw) {
		return nil
	}
	return raw[1 : len(raw)-1]
}

func quoted(inner []byte) []byte {
	return append(append(append(make([]byte, 0, len(inner)+2), '"'), inner...), '"')
}

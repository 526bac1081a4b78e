package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// conversation is a history as the Messages API wants it: the system's texts apart, then turns of the user and the assistant in alternation,
// the user's first.
type conversation struct {
	system     []block
	systemAsIs bool // the blocks have more than text
	turns      []turn
	called     []string // names of the tools that were called, each once
	isCalled   map[string]bool
}

// turn is all that one side says before the other does.
type turn struct {
	assistant bool
	results   [][]byte // of tools; they must come before everything else
	blocks    []block
}

// read takes the messages of a chat.
func (c *conversation) read(messages []byte) error {
	if len(messages) == 0 || messages[0] != '[' {
		return refuse(openai.CodeInvalidType, "messages", "must be an array")
	}
	n := 0
	for m := range rawjson.Elements(messages) {
		if err := c.message(fmt.Sprintf("messages[%d]", n), object(m.Of(messages))); err != nil {
			return err
		}
		n++
	}
	c.trimEnd()
	if len(c.turns) == 0 || c.turns[0].assistant {
		c.turns = slices.Insert(c.turns, 0, turn{blocks: []block{textBlock([]byte(`"."`), nil)}})
	}
	return nil
}

func (c *conversation) message(place string, m map[string][]byte) error {
	switch role := rawjson.Text(m["role"]); role {
	case "system", "developer":
		return c.systemMessage(place, m)
	case "user":
		blocks, err := contentOf(place+".content", m["content"], anyPart)
		if len(blocks) > 0 {
			t := c.turn(false)
			t.blocks = append(t.blocks, blocks...)
		}
		return err
	case "assistant":
		return c.assistantMessage(place, m)
	case "tool":
		return c.toolMessage(place, m)
	default:
		return refuse(openai.CodeInvalidValue, place+".role", "is %q, which this provider does not know", role)
	}
}

// turn gives the turn that a message of this side belongs to.
func (c *conversation) turn(assistant bool) *turn {
	if n := len(c.turns); n == 0 || c.turns[n-1].assistant != assistant {
		c.turns = append(c.turns, turn{assistant: assistant})
	}
	return &c.turns[len(c.turns)-1]
}

// native takes the member system of a request, which comes before the system's messages.
func (c *conversation) native(system []byte) error {
	if len(system) > 0 && system[0] == '[' {
		c.systemAsIs = true
	}
	blocks, err := contentOf("system", system, textPart)
	c.system = append(c.system, blocks...)
	return err
}

func (c *conversation) systemMessage(place string, m map[string][]byte) error {
	blocks, err := contentOf(place+".content", m["content"], func(place string, part map[string][]byte) (block, error) {
		c.systemAsIs = c.systemAsIs || part["cache_control"] != nil
		return textPart(place, part)
	})
	c.system = append(c.system, blocks...)
	return err
}

// systemJSON gives the member system: one text with blank lines between the messages, or the blocks if they carry more.
func (c *conversation) systemJSON() []byte {
	switch {
	case len(c.system) == 0:
		return nil
	case c.systemAsIs:
		return blocksJSON(nil, c.system)
	}
	all := []byte{'"'}
	for i, b := range c.system {
		if i > 0 {
			all = append(all, `\n\n`...)
		}
		all = append(all, inner(rawjson.Get(b.json, "text"))...)
	}
	return append(all, '"')
}

func (c *conversation) assistantMessage(place string, m map[string][]byte) error {
	if m["function_call"] != nil {
		return refuse(openai.CodeInvalidValue, place+".function_call", "is out of date and can't be sent to this provider; use tool_calls")
	}
	blocks, err := contentOf(place+".content", m["content"], textPart)
	if err != nil {
		return err
	}
	if isString(m["refusal"]) {
		if b := textBlock(m["refusal"], nil); b.kind != "" {
			blocks = append(blocks, b)
		}
	}
	n := 0
	for call := range rawjson.Elements(m["tool_calls"]) {
		b, err := c.toolUse(fmt.Sprintf("%s.tool_calls[%d]", place, n), object(call.Of(m["tool_calls"])))
		if err != nil {
			return err
		}
		blocks = append(blocks, b)
		n++
	}
	if len(blocks) == 0 { // thinking alone is no message
		return nil
	}
	t := c.turn(true)
	t.blocks = append(append(t.blocks, thinkingBlocks(m["reasoning_details"])...), blocks...)
	return nil
}

func (c *conversation) toolUse(place string, call map[string][]byte) (block, error) {
	function := object(call["function"])
	name, id := rawjson.Text(function["name"]), rawjson.Text(call["id"])
	switch {
	case name == "":
		return block{}, refuse(openai.CodeMissing, place+".function.name", "is missing")
	case id == "":
		return block{}, refuse(openai.CodeMissing, place+".id", "is missing")
	}
	input, ok := toolInput(function["arguments"])
	if !ok {
		return block{}, refuse(openai.CodeInvalidValue, place+".function.arguments", "must be a JSON object for this provider")
	}
	if !c.isCalled[name] {
		c.isCalled[name] = true
		c.called = append(c.called, name)
	}
	return block{"tool_use", typed("tool_use").set("id", quote(toolID(id))).set("name", function["name"]).set("input", input).end()}, nil
}

// toolInput gives the object that arguments stand for. No arguments are an empty one (TOOL-07).
func toolInput(arguments []byte) (input []byte, ok bool) {
	input = arguments
	if isString(arguments) {
		input = text(arguments)
	}
	switch trimmed := strings.TrimSpace(string(input)); {
	case trimmed == "" || trimmed == "null":
		return []byte("{}"), true
	case trimmed[0] == '{' && rawjson.Valid(input):
		return []byte(trimmed), true
	}
	return nil, false
}

// toolID gives an id of the letters that the API accepts. Another id is rewritten, in the same way each time, and so that two ids stay two.
func toolID(id string) string {
	allowed := func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-') {
			return r
		}
		return '_'
	}
	clean := strings.Map(allowed, id)
	if clean == id {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return clean + "_" + hex.EncodeToString(sum[:6])
}

func (c *conversation) toolMessage(place string, m map[string][]byte) error {
	id := rawjson.Text(m["tool_call_id"])
	if id == "" {
		return refuse(openai.CodeMissing, place+".tool_call_id", "is missing")
	}
	content := m["content"]
	if isString(content) {
		if blank(content) {
			content = nil
		}
	} else {
		blocks, err := contentOf(place+".content", content, anyPart)
		if err != nil {
			return err
		}
		if content = nil; len(blocks) > 0 {
			content = blocksJSON(nil, blocks)
		}
	}
	result := typed("tool_result").set("tool_use_id", quote(toolID(id))).set("content", content).set("is_error", m["is_error"])
	t := c.turn(false)
	t.results = append(t.results, result.set("cache_control", m["cache_control"]).end())
	return nil
}

// trimEnd takes white space off the end of an answer that the model is to continue: the API refuses it there.
func (c *conversation) trimEnd() {
	if len(c.turns) == 0 || !c.turns[len(c.turns)-1].assistant {
		return
	}
	blocks := c.turns[len(c.turns)-1].blocks
	if b := &blocks[len(blocks)-1]; b.kind == "text" {
		full := rawjson.Text(rawjson.Get(b.json, "text"))
		if trimmed := strings.TrimRightFunc(full, unicode.IsSpace); len(trimmed) < len(full) {
			b.json = rawjson.AppendSet(nil, b.json, "text", quote(trimmed))
		}
	}
}

// thinks says whether the last answer of the assistant begins with its thinking or needs none. While thinking has a budget, the API
// refuses a call of a tool whose thinking is missing.
func (c *conversation) thinks() bool {
	for _, t := range slices.Backward(c.turns) {
		if t.assistant {
			first := t.blocks[0].kind
			called := slices.ContainsFunc(t.blocks, func(b block) bool { return b.kind == "tool_use" })
			return !called || first == "thinking" || first == "redacted_thinking"
		}
	}
	return true
}

// messagesJSON gives the member messages.
func (c *conversation) messagesJSON() []byte {
	all := make([][]byte, len(c.turns))
	for i, t := range c.turns {
		role := []byte(`"user"`)
		if t.assistant {
			role = []byte(`"assistant"`)
		}
		all[i] = fields(nil).set("role", role).set("content", blocksJSON(t.results, t.blocks)).end()
	}
	return array(all)
}

func blocksJSON(first [][]byte, blocks []block) []byte {
	for _, b := range blocks {
		first = append(first, b.json)
	}
	return array(first)
}

package anthropic

import (
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
	calls      []call
	byID       map[string]*calls // by the id that the client knows
	sent       map[string]bool   // ids of the calls as they are sent
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
		if err := c.message(fmt.Sprintf("messages[%d]", n), rawjson.Given(m.Of(messages))); err != nil {
			return err
		}
		n++
	}
	c.answerAll()
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
		blocks, err := contentOf(place+".content", m["content"], c.userPart)
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
		return blocksJSON(c.system)
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
	repeated := map[string]bool{} // ids of calls that stand in tool_calls too
	for call := range rawjson.Elements(m["tool_calls"]) {
		repeated[rawjson.Text(rawjson.Get(call.Of(m["tool_calls"]), "id"))] = true
	}
	t := c.turn(true)
	blocks, err := contentOf(place+".content", m["content"], func(place string, part map[string][]byte) (block, error) {
		return c.assistantPart(place, part, repeated)
	})
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
		b, err := c.toolCall(fmt.Sprintf("%s.tool_calls[%d]", place, n), rawjson.Given(call.Of(m["tool_calls"])))
		if err != nil {
			return err
		}
		blocks = append(blocks, b)
		n++
	}
	thinking := thinkingBlocks(m["reasoning_details"])
	if len(thinking) == 0 {
		thinking = slices.DeleteFunc(slices.Clone(blocks), func(b block) bool { return !b.isThinking() })
	}
	switch blocks = slices.DeleteFunc(blocks, block.isThinking); {
	case len(blocks) > 0:
		t.blocks = append(append(t.blocks, thinking...), blocks...)
	case len(t.blocks) == 0: // thinking alone is no message
		c.turns = c.turns[:len(c.turns)-1]
	}
	return nil
}

// goOn is what the user says after an answer that is to be continued, where a conversation must not end with the assistant.
const goOn = `"Continue."`

// finish ends the conversation. Its last turn may be the beginning of the answer only for some models and settings; for others the user speaks
// once more. White space at the end of such a beginning is refused.
func (c *conversation) finish(prefill bool) {
	if !c.turns[len(c.turns)-1].assistant {
		return
	}
	if !prefill {
		c.turns = append(c.turns, turn{blocks: []block{textBlock([]byte(goOn), nil)}})
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
			called := slices.ContainsFunc(t.blocks, func(b block) bool { return b.kind == "tool_use" })
			return !called || t.blocks[0].isThinking()
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
		content := make([][]byte, 0, len(t.results)+len(t.blocks))
		content = append(content, t.results...)
		for _, b := range t.blocks {
			content = append(content, b.json)
		}
		all[i] = fields(nil).set("role", role).set("content", array(content)).end()
	}
	return array(all)
}

func blocksJSON(blocks []block) []byte {
	all := make([][]byte, len(blocks))
	for i, b := range blocks {
		all[i] = b.json
	}
	return array(all)
}

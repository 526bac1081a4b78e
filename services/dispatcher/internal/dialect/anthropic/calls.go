package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// call is a call of a tool in the history. The API wants its id to be unique in the conversation and its result, exactly one, in the turn that
// follows; in OpenAI's protocol some servers number the calls of each answer anew.
type call struct {
	sent   string // its id as it is sent
	name   string
	turn   int // of the assistant
	result int // place of its result in the turn that follows, counted from 1; 0 = none yet
}

// calls are those that the client knows by one id.
type calls struct {
	made int
	turn int   // of the last ones
	open []int // those of that turn that have no result yet
	last int
}

// toolCall translates an entry of tool_calls.
func (c *conversation) toolCall(place string, entry map[string][]byte) (block, error) {
	function := rawjson.Given(entry["function"])
	return c.toolUse(place+".function.name", entry["id"], function["name"], function["arguments"], nil)
}

// toolUse makes a block of a call. The values are raw; place is that of the name.
func (c *conversation) toolUse(place string, id, name, arguments, cache []byte) (block, error) {
	if len(inner(name)) == 0 {
		return block{}, refuse(openai.CodeMissing, place, "is missing")
	}
	sent := c.note(rawjson.Text(id), rawjson.Text(name))
	return block{"tool_use", typed("tool_use").set("id", quote(sent)).set("name", name).set("input", toolInput(arguments)).
		set("cache_control", cache).end()}, nil
}

// note remembers a call of the last turn and gives the id that it is sent with.
func (c *conversation) note(id, name string) (sent string) {
	same := c.byID[id]
	if same == nil {
		same = &calls{}
		c.byID[id] = same
	}
	wanted := toolID(id)
	for sent = wanted; c.sent[sent]; sent = wanted + "_" + strconv.Itoa(same.made+1) {
		same.made++
	}
	c.sent[sent] = true
	if turn := len(c.turns) - 1; turn != same.turn {
		same.turn, same.open = turn, nil
	}
	same.last = len(c.calls)
	same.open = append(same.open, same.last)
	c.calls = append(c.calls, call{sent: sent, name: name, turn: same.turn})
	return sent
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
	if clean == id && id != "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return clean + "_" + hex.EncodeToString(sum[:6])
}

// toolInput gives the object that arguments stand for. No arguments are an empty one (TOOL-07). A model may have made a text that is none, or
// its answer was cut off; it is kept for the model to see.
func toolInput(arguments []byte) []byte {
	input := arguments
	if isString(arguments) {
		input = text(arguments)
	}
	switch trimmed := strings.TrimSpace(string(input)); {
	case trimmed == "" || trimmed == "null":
		return []byte("{}")
	case trimmed[0] == '{' && rawjson.Valid(input):
		return []byte(trimmed)
	}
	return fields(nil).set("arguments", quote(input)).end()
}

// called lists the names of the tools that were called, each once.
func (c *conversation) called() []string {
	var names []string
	known := map[string]bool{}
	for _, made := range c.calls {
		if !known[made.name] {
			known[made.name] = true
			names = append(names, made.name)
		}
	}
	return names
}

func (c *conversation) toolMessage(place string, m map[string][]byte) error {
	if id := rawjson.Text(m["tool_call_id"]); id == "" && c.byID[id] == nil {
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
		content = blocksJSON(blocks)
	}
	c.result(m["tool_call_id"], content, m["is_error"], m["cache_control"])
	return nil
}

// result takes what a tool gave back, in raw values. It belongs to the first call with this id in the last turn that has one, and that has no
// result yet; a further result takes the place of the one before.
func (c *conversation) result(callID, content, isError, cache []byte) {
	id := rawjson.Text(callID)
	same := c.byID[id]
	if same == nil { // the call is not in the history; the API says so
		t := c.turn(false)
		t.results = append(t.results, toolResult(toolID(id), content, isError, cache))
		return
	}
	of := same.last
	if len(same.open) > 0 {
		of, same.open = same.open[0], same.open[1:]
	}
	c.settle(&c.calls[of], content, isError, cache)
}

// settle puts the result of a call into the turn that follows it.
func (c *conversation) settle(made *call, content, isError, cache []byte) {
	if made.turn+1 == len(c.turns) {
		c.turn(false)
	}
	t := &c.turns[made.turn+1]
	if made.result == 0 {
		t.results = append(t.results, nil)
		made.result = len(t.results)
	}
	t.results[made.result-1] = toolResult(made.sent, content, isError, cache)
}

func toolResult(id string, content, isError, cache []byte) []byte {
	return typed("tool_result").set("tool_use_id", quote(id)).set("content", content).set("is_error", isError).set("cache_control", cache).end()
}

// answerAll gives each call a result that has none, say because the answer broke off before its end or the client gave up: the API refuses the
// whole conversation otherwise.
func (c *conversation) answerAll() {
	for i := range c.calls {
		if c.calls[i].result == 0 {
			c.settle(&c.calls[i], []byte(`"There is no result."`), []byte("true"), nil)
		}
	}
}

// assistantPart translates a part of an answer. Some clients repeat the calls of tool_calls as parts in Anthropic's form, or have them there
// alone. Thinking without a signature is refused, so it is left out.
func (c *conversation) assistantPart(place string, part map[string][]byte, repeated map[string]bool) (block, error) {
	switch kind := rawjson.Text(part["type"]); kind {
	case "tool_use":
		if repeated[rawjson.Text(part["id"])] {
			return block{}, nil
		}
		return c.toolUse(place+".name", part["id"], part["name"], part["input"], part["cache_control"])
	case "thinking":
		if len(inner(part["signature"])) == 0 {
			return block{}, nil
		}
		return block{kind, typed(kind).set("thinking", quoted(inner(part["thinking"]))).set("signature", part["signature"]).end()}, nil
	case "redacted_thinking":
		if len(inner(part["data"])) == 0 {
			return block{}, nil
		}
		return block{kind, typed(kind).set("data", part["data"]).end()}, nil
	}
	return textPart(place, part)
}

// userPart translates a part of the user, which may be the result of a tool in Anthropic's form.
func (c *conversation) userPart(place string, part map[string][]byte) (block, error) {
	if !rawjson.Is(part["type"], "tool_result") {
		return anyPart(place, part)
	}
	result := map[string][]byte{"tool_call_id": part["tool_use_id"], "content": part["content"], "is_error": part["is_error"], "cache_control": part["cache_control"]}
	return block{}, c.toolMessage(place, result)
}

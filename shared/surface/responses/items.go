package responses

import (
	"strconv"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// kind says what an item means here.
type kind uint8

const (
	kindMessage kind = iota
	kindCall         // of a function or a custom tool
	kindResult
	kindTools     // tools that come as an item
	kindReference // stands for an item of a stored response
	kindOther     // what only its maker can read: reasoning, and calls of tools that ran there
)

// kinds are the types of items.
var kinds = map[string]kind{
	"message":       kindMessage,
	"function_call": kindCall, "custom_tool_call": kindCall,
	"function_call_output": kindResult, "custom_tool_call_output": kindResult,
	"additional_tools": kindTools, "item_reference": kindReference,
	"reasoning": kindOther, "compaction": kindOther, "compaction_trigger": kindOther,
	"web_search_call": kindOther, "file_search_call": kindOther, "code_interpreter_call": kindOther, "image_generation_call": kindOther,
	"computer_call": kindOther, "computer_call_output": kindOther, "local_shell_call": kindOther, "local_shell_call_output": kindOther,
	"shell_call": kindOther, "shell_call_output": kindOther, "apply_patch_call": kindOther, "apply_patch_call_output": kindOther,
	"mcp_list_tools": kindOther, "mcp_approval_request": kindOther, "mcp_approval_response": kindOther, "mcp_call": kindOther,
	"tool_search_call": kindOther, "tool_search_output": kindOther,
}

// item is one item of the input.
type item struct {
	raw                                                   []byte
	kind                                                  kind
	custom                                                bool
	typ, role, id, content, callID, name, space, in, args []byte
	output, tools                                         []byte

	group  int // of the text and calls that are one message; 0 = none
	answer int // of a call: the index of its result, -1 = none
	taken  bool
}

// message is a message as Chat Completions has it, with the items that it was made of.
type message struct {
	body  []byte
	items [][]byte
	// within says that the items are those of the message before.
	within bool
	// result is what the message is where its call stands before this input; nil when there is one here.
	result []byte
	media  [][]byte // parts of the result that are no text
}

// index is the path of an element.
func index(at string, n int) string { return at + "[" + strconv.Itoa(n) + "]" }

// input reads the conversation.
func (r *reader) input() {
	raw := r.members["input"]
	r.inputRaw = raw
	switch {
	case raw == nil:
		r.fail(openai.CodeMissing, "input", "'input' is missing.")
	case raw[0] == '"':
		r.readTools(nil)
		r.inputRaw = raw
		user := append(append([]byte(`{"role":"user","content":`), raw...), '}')
		r.messages = []message{{body: user, items: [][]byte{user}}}
	case raw[0] == '[':
		items := r.items(raw)
		r.readTools(items)
		pair(items)
		r.join(items)
	default:
		r.wrongType("input", "a string or an array of items")
	}
}

// items reads each item once.
func (r *reader) items(raw []byte) []item {
	var items []item
	for span := range rawjson.Elements(raw) {
		it := item{raw: span.Of(raw), answer: -1}
		at := index("input", len(items))
		if it.raw[0] != '{' {
			r.wrongType(at, "an object")
			return nil
		}
		it.read()
		if !r.classify(&it, at) {
			return nil
		}
		items = append(items, it)
	}
	return items
}

// silent says that the item says nothing in a conversation.
func (it *item) silent() bool { return it.kind >= kindTools }

func (it *item) read() {
	for m := range rawjson.Members(it.raw) {
		value := m.Value.Of(it.raw)
		if value[0] == 'n' {
			continue
		}
		switch string(m.Name()) {
		case "type":
			it.typ = value
		case "role":
			it.role = value
		case "id":
			it.id = value
		case "content":
			it.content = value
		case "call_id":
			it.callID = value
		case "name":
			it.name = value
		case "namespace":
			it.space = value
		case "input":
			it.in = value
		case "arguments":
			it.args = value
		case "output":
			it.output = value
		case "tools":
			it.tools = value
		}
	}
}

// classify finds out what an item is. It is false when it can't be taken.
func (r *reader) classify(it *item, at string) bool {
	typ := rawjson.Text(it.typ)
	if it.typ == nil && it.role != nil {
		typ = "message"
	}
	known := false
	if it.kind, known = kinds[typ]; !known {
		if it.typ == nil {
			r.fail(openai.CodeMissing, at+".type", "'%s.type' is missing.", at)
		} else {
			r.fail(openai.CodeInvalidValue, at+".type", "'%s': there is no item of type '%s'.", at+".type", typ)
		}
		return false
	}
	it.custom = typ == "custom_tool_call"
	switch it.kind {
	case kindMessage:
		switch rawjson.Text(it.role) {
		case "user", "assistant", "system", "developer":
		default:
			r.fail(openai.CodeInvalidValue, at+".role", "'%s.role' must be 'user', 'assistant', 'system' or 'developer'.", at)
		}
	case kindCall:
		if it.callID == nil {
			it.callID = it.id
		}
		r.wantText(it.callID, at+".call_id")
		r.wantText(it.name, at+".name")
	case kindResult:
		r.wantText(it.callID, at+".call_id")
	case kindReference:
		r.wantText(it.id, at+".id")
		r.References = append(r.References, Reference{Item: rawjson.Text(it.id), At: at})
	case kindTools, kindOther:
	}
	return r.err == nil
}

func (r *reader) wantText(raw []byte, param string) {
	if len(raw) <= len(`""`) || raw[0] != '"' {
		r.wrongType(param, "a string that is not empty")
	}
}

// waiting are calls of one group that share an id and have no result yet.
type waiting struct {
	group int
	calls []int
}

// pair finds the groups of items that are one message, and the result of each call: the first behind it that has its id. Of calls that share an id, those of
// the last group before the result come first, in their order.
func pair(items []item) {
	group, open := 0, false
	byID := map[string][]waiting{}
	for i := range items {
		it := &items[i]
		switch {
		case it.silent():
			continue
		case it.kind == kindMessage && rawjson.Is(it.role, "assistant"), it.kind == kindCall && !open:
			group, open = group+1, true
			it.group = group
		case it.kind == kindCall:
			it.group = group
		default:
			open = false
		}
		if it.kind != kindCall && it.kind != kindResult {
			continue
		}
		id := rawjson.Text(it.callID)
		queues := byID[id]
		last := len(queues) - 1
		switch {
		case it.kind == kindCall && last >= 0 && queues[last].group == group:
			queues[last].calls = append(queues[last].calls, i)
		case it.kind == kindCall:
			byID[id] = append(queues, waiting{group, []int{i}})
		case last >= 0:
			q := &queues[last]
			items[q.calls[0]].answer, it.taken = i, true
			if q.calls = q.calls[1:]; len(q.calls) == 0 {
				byID[id] = queues[:last]
			}
		}
	}
}

// join makes messages of the items.
func (r *reader) join(items []item) {
	lastUser := -1
	for i := range items {
		if items[i].kind == kindMessage && rawjson.Is(items[i].role, "user") {
			lastUser = i
		}
	}
	for i := 0; i < len(items); {
		it := &items[i]
		at := index("input", i)
		switch {
		case it.group > 0:
			i = r.joinGroup(items, i, i > lastUser)
			continue
		case it.silent():
			r.think(it)
			i++
			continue
		case it.kind == kindMessage:
			c := r.readContent(it.content, at+".content")
			role := rawjson.Text(it.role)
			if role == "developer" {
				role = "system"
			}
			body := append(append([]byte(`{"role":"`), role...), '"')
			if isContext(it.role, it.name) {
				body = append(append(body, `,"name":`...), it.name...)
			}
			body = append(body, `,"content":`...)
			r.messages = append(r.messages, message{body: append(c.append(body), '}'), items: [][]byte{it.raw}})
		case it.kind == kindResult && !it.taken:
			r.strayResult(it, at)
		}
		r.thought = thought{}
		i++
	}
}

// thought is what stands before an item in items of reasoning.
type thought struct {
	items [][]byte
	texts [][]byte // inner parts of strings
}

// think notes what an item of reasoning says, in the clear.
func (r *reader) think(it *item) {
	if !rawjson.Is(it.typ, "reasoning") {
		return
	}
	r.thought.items = append(r.thought.items, it.raw)
	for _, name := range []string{"summary", "content"} {
		parts := rawjson.Get(it.raw, name)
		for span := range rawjson.Elements(parts) {
			if text := rawjson.Get(span.Of(parts), "text"); len(text) > len(`""`) && text[0] == '"' {
				r.thought.texts = append(r.thought.texts, text[1:len(text)-1])
			}
		}
	}
}

// joinGroup makes a message of the text and the calls that follow it, and messages of the results of those. It gives the index behind the group. What a model
// thought goes back to it while it works with tools, since the user's last words (inLoop): some refuse to go on without.
func (r *reader) joinGroup(items []item, first int, inLoop bool) (next int) {
	group, calls := items[first].group, []*item(nil)
	m := message{body: []byte(`{"role":"assistant","content":`)}
	text := false
	var thoughts content
	for next = first; next < len(items); next++ {
		it := &items[next]
		if it.silent() {
			r.think(it)
			continue
		}
		if it.group != group {
			break
		}
		m.items = append(append(m.items, r.thought.items...), it.raw)
		thoughts.texts = append(thoughts.texts, r.thought.texts...)
		r.thought = thought{}
		if it.kind == kindCall {
			calls = append(calls, it)
			continue
		}
		c := r.readContent(it.content, index("input", next)+".content")
		m.body, text = c.append(m.body), true
	}
	if !text {
		m.body = append(m.body, "null"...)
	}
	ids := uniqueIDs(calls)
	if len(calls) > 0 {
		m.body = append(m.body, `,"tool_calls":[`...)
		for i, c := range calls {
			if i > 0 {
				m.body = append(m.body, ',')
			}
			m.body = r.appendCall(m.body, c, ids[i])
		}
		m.body = append(m.body, ']')
		if inLoop && len(thoughts.texts) > 0 {
			m.body = thoughts.appendText(append(m.body, `,"reasoning_content":`...))
		}
	}
	m.body = append(m.body, '}')
	r.messages = append(r.messages, m)
	r.results(items, calls, ids)
	return next
}

// uniqueIDs gives the ids of calls that are made at once, as raw JSON. One that another one has before it gets a number behind it.
func uniqueIDs(calls []*item) [][]byte {
	ids, used, next := make([][]byte, len(calls)), map[string]bool{}, map[string]int{}
	for i, c := range calls {
		id := rawjson.Text(c.callID)
		unique := id
		for used[unique] {
			next[id] = max(next[id], 1) + 1
			unique = id + "_" + strconv.Itoa(next[id])
		}
		used[unique] = true
		if ids[i] = c.callID; unique != id {
			ids[i] = rawjson.AppendString(nil, unique)
		}
	}
	return ids
}

// appendCall appends a call as Chat Completions has it.
func (r *reader) appendCall(dst []byte, c *item, id []byte) []byte {
	dst = append(append(dst, `{"id":`...), id...)
	dst = append(dst, `,"type":"function","function":{"name":`...)
	dst = rawjson.AppendString(dst, r.Tools.flatName(rawjson.Text(c.space), rawjson.Text(c.name)))
	dst = append(dst, `,"arguments":`...)
	switch {
	case c.custom:
		input := c.in
		if len(input) == 0 || input[0] != '"' {
			input = rawjson.AppendString(nil, input)
		}
		arguments := append(append([]byte(`{"input":`), input...), '}')
		dst = rawjson.AppendString(dst, arguments)
	case len(c.args) > len(`""`) && c.args[0] == '"':
		dst = append(dst, c.args...)
	case len(c.args) == 0 || c.args[0] == '"':
		dst = append(dst, `"{}"`...)
	default: // an object, as some clients send it
		dst = rawjson.AppendString(dst, c.args)
	}
	return append(dst, "}}"...)
}

// noResult is what the result of a call is that has none: the model would not be asked otherwise.
var noResult = []byte(`"(no result)"`)

// results makes messages of the results of calls, in the order of the calls. Of parts that are no text, which a result can't hold, a message of the user follows.
func (r *reader) results(items []item, calls []*item, ids [][]byte) {
	var media [][]byte
	for i, call := range calls {
		body := append(append([]byte(toolRole), ids[i]...), `,"content":`...)
		if call.answer < 0 {
			r.messages = append(r.messages, message{body: append(append(body, noResult...), '}'), within: true})
			continue
		}
		it := &items[call.answer]
		c := r.result(it, index("input", call.answer))
		media = append(media, c.media...)
		r.messages = append(r.messages, message{body: append(c.appendText(body), '}'), items: [][]byte{it.raw}})
	}
	if len(media) > 0 {
		r.messages = append(r.messages, message{body: withMedia(media), within: true})
	}
}

// result reads what a tool gave: a string, parts, or any other JSON, which is its text.
func (r *reader) result(it *item, at string) content {
	if len(it.output) > 0 && it.output[0] != '"' && it.output[0] != '[' {
		var c content
		c.addText(rawjson.AppendString(nil, it.output))
		return c
	}
	return r.readContent(it.output, at+".output")
}

// strayResult makes a message of the user of a result whose call is not there.
func (r *reader) strayResult(it *item, at string) {
	c := r.result(it, at)
	var told content
	told.addText(rawjson.AppendString(nil, "Result of the tool call "+rawjson.Text(it.callID)+":"))
	told.texts, told.parts, told.media = append(told.texts, c.texts...), append(told.parts, c.parts...), c.media
	body := append(told.append([]byte(`{"role":"user","content":`)), '}')
	result := append(append([]byte(toolRole), it.callID...), `,"content":`...)
	r.messages = append(r.messages, message{body: body, items: [][]byte{it.raw}, result: append(c.appendText(result), '}'), media: c.media})
}

const toolRole = `{"role":"tool","tool_call_id":`

// withMedia is a message of the user with the parts of results that are no text, which a result can't hold.
func withMedia(media [][]byte) []byte {
	return append(appendArray([]byte(`{"role":"user","content":`), media), '}')
}

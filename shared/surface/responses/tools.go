package responses

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Tool is a tool that the client offers and the model may call.
type Tool struct {
	Name   string // as the client calls it
	Space  string // namespace that it is in; "" = none
	Custom bool   // its input is a text

	flat string // name of the function that stands for it
	body []byte // of the function, without the name
}

// Tools are those of a request.
type Tools struct {
	list   []Tool
	byFlat map[string]int
	byName map[toolName]int
	hosted []string // types of tools that run where the model does, in order
}

type toolName struct{ space, name string }

// Find gives the tool that a model calls by the name of its function, or by the name that one member of one namespace has: models leave the rest out. ok is
// false for one that was not offered.
func (t *Tools) Find(name string) (tool Tool, ok bool) {
	if i, ok := t.byFlat[name]; ok {
		return t.list[i], true
	}
	for i := range t.list {
		switch {
		case t.list[i].Space == "" || t.list[i].Name != name:
		case ok:
			return Tool{}, false
		default:
			tool, ok = t.list[i], true
		}
	}
	return tool, ok
}

// flatName gives the name of the function that stands for a tool, also for one of an earlier request.
func (t *Tools) flatName(space, name string) string {
	if i, offered := t.byName[toolName{space, name}]; offered {
		return t.list[i].flat
	}
	return flatten(space, name)
}

// maxFunctionName is the longest name that OpenAI takes, and with it everybody.
const maxFunctionName = 64

// flatten gives the name of a function for a member of a namespace.
func flatten(space, name string) string {
	if space == "" {
		return name
	}
	flat := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
			return c
		}
		return '_'
	}, space+"__"+name)
	if flat != space+"__"+name || len(flat) > maxFunctionName {
		flat = marked(flat, space, name)
	}
	return flat
}

// marked makes a name unique by a part of a hash.
func marked(flat, space, name string) string {
	sum := sha256.Sum256([]byte(space + "\x00" + name))
	mark := "_" + hex.EncodeToString(sum[:4])
	return flat[:min(len(flat), maxFunctionName-len(mark))] + mark
}

// readTools reads the tools of the request, and those that come as items.
func (r *reader) readTools(items []item) {
	r.Tools = newTools()
	r.toolList(r.members["tools"], "tools", "")
	for i := range items {
		if items[i].kind == kindTools {
			r.toolList(items[i].tools, index("input", i)+".tools", "")
		}
	}
}

// toolList reads an array of tools, of a namespace or of none.
func (r *reader) toolList(raw []byte, at, space string) {
	if raw == nil {
		return
	}
	if raw[0] != '[' {
		r.wrongType(at, "an array")
		return
	}
	n := 0
	for span := range rawjson.Elements(raw) {
		r.tool(span.Of(raw), index(at, n), space)
		n++
	}
}

func (r *reader) tool(raw []byte, at, space string) {
	if raw[0] != '{' {
		r.wrongType(at, "an object")
		return
	}
	kind := rawjson.Text(rawjson.Get(raw, "type"))
	function := raw
	if inner := rawjson.Get(raw, "function"); kind == "function" && len(inner) > 0 && inner[0] == '{' { // as Chat Completions has it
		function = inner
	}
	name := rawjson.Text(rawjson.Get(function, "name"))
	switch kind {
	case "function", "custom", "namespace":
		if name == "" {
			r.fail(openai.CodeMissing, at+".name", "'%s.name' is missing.", at)
			return
		}
	case "":
		r.fail(openai.CodeMissing, at+".type", "'%s.type' is missing.", at)
		return
	default:
		r.Tools.hosted = append(r.Tools.hosted, kind)
		return
	}
	if kind == "namespace" {
		r.toolList(rawjson.Get(raw, "tools"), at+".tools", name)
		return
	}
	t := Tool{Name: name, Space: space, Custom: kind == "custom"}
	if t.Custom {
		t.body = customFunction(raw)
	} else {
		t.body = plainFunction(function)
	}
	r.Tools.add(t)
}

// add adds a tool under a name that no other has. Of two that are called the same, the last counts.
func (t *Tools) add(tool Tool) {
	key := toolName{tool.Space, tool.Name}
	if i, twice := t.byName[key]; twice {
		tool.flat = t.list[i].flat
		t.list[i] = tool
		return
	}
	tool.flat = flatten(tool.Space, tool.Name)
	if _, taken := t.byFlat[tool.flat]; taken {
		tool.flat = marked(tool.flat, tool.Space, tool.Name)
	}
	t.put(tool)
}

func newTools() Tools { return Tools{byFlat: map[string]int{}, byName: map[toolName]int{}} }

// put adds a tool that has its name.
func (t *Tools) put(tool Tool) {
	t.byFlat[tool.flat], t.byName[toolName{tool.Space, tool.Name}] = len(t.list), len(t.list)
	t.list = append(t.list, tool)
}

// plainFunction gives the members of a function that Chat Completions knows, each behind a comma.
func plainFunction(raw []byte) (body []byte) {
	for m := range rawjson.Members(raw) {
		value := m.Value.Of(raw)
		switch name := string(m.Name()); name {
		case "description", "parameters", "strict":
			if value[0] != 'n' {
				body = append(append(append(append(body, `,"`...), name...), `":`...), value...)
			}
		}
	}
	return body
}

// customFunction gives the members of a function with one text in the place of a custom tool. What its text has to look like stands in the description.
func customFunction(raw []byte) []byte {
	description := rawjson.Text(rawjson.Get(raw, "description"))
	format := rawjson.Get(raw, "format")
	if definition := rawjson.Text(rawjson.Get(format, "definition")); definition != "" {
		description += "\n\nThe input has to match this grammar (" + rawjson.Text(rawjson.Get(format, "syntax")) + "):\n" + definition
	}
	body := rawjson.AppendString([]byte(`,"description":`), strings.TrimSpace(description))
	return append(body, `,"parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`...)
}

// appendChat appends the tools as functions; nil for none.
func (t *Tools) appendChat(dst []byte) []byte {
	for i := range t.list {
		tool := &t.list[i]
		if dst == nil {
			dst = append(dst, '[')
		} else {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendString(append(dst, `{"type":"function","function":{"name":`...), tool.flat)
		dst = append(append(dst, tool.body...), "}}"...)
	}
	if dst == nil {
		return nil
	}
	return append(dst, ']')
}

// choice reads tool_choice and gives it as Chat Completions has it; nil = the model decides. Tools that run where the model does are left out of a request,
// unless the client demands one.
func (r *reader) choice() []byte {
	raw := r.members["tool_choice"]
	if raw == nil {
		return nil
	}
	switch raw[0] {
	case '"':
		return r.choiceWord(raw)
	case '{':
		return r.choiceObject(raw)
	}
	r.wrongType("tool_choice", "a string or an object")
	return nil
}

func (r *reader) choiceWord(raw []byte) []byte {
	switch rawjson.Text(raw) {
	case "auto", "none":
	case "required":
		if len(r.Tools.list) == 0 {
			return r.demanded(r.Tools.hosted...)
		}
	default:
		r.fail(openai.CodeInvalidValue, "tool_choice", "'tool_choice' must be 'none', 'auto', 'required' or an object.")
	}
	return raw
}

// demanded is a choice of one of some tools that run where the model does. A search of the web is the gateway's, the others can't be had.
func (r *reader) demanded(hosted ...string) []byte {
	switch {
	case len(hosted) == 0:
		r.fail(openai.CodeInvalidValue, "tool_choice", "'tool_choice' demands a tool, but there is none in 'tools'.")
	case r.Tools.searches() && slices.ContainsFunc(hosted, isSearch):
		r.searches = openai.SearchName(hosted[slices.IndexFunc(hosted, isSearch)])
	default:
		r.fail("unsupported_value", "tool_choice",
			"'tool_choice' demands the tool '%s', which is not to be had here: only functions, custom tools and namespaces are.", hosted[0])
	}
	return nil
}

// searches says whether there is a search of the web among the tools.
func (t *Tools) searches() bool { return slices.ContainsFunc(t.hosted, isSearch) }

func isSearch(kind string) bool { return openai.IsSearchType([]byte(`"` + kind)) }

func (r *reader) choiceObject(raw []byte) []byte {
	kind, named := rawjson.Text(rawjson.Get(raw, "type")), raw
	if inner := rawjson.Get(raw, kind); (kind == "function" || kind == "custom") && len(inner) > 0 && inner[0] == '{' { // as Chat Completions has it
		named = inner
	}
	switch kind {
	case "function", "custom":
		return r.choiceNamed(rawjson.Text(rawjson.Get(named, "namespace")), rawjson.Text(rawjson.Get(named, "name")))
	case "allowed_tools":
		return r.choiceAmong(raw)
	case "auto", "none", "required":
		return r.choiceWord(rawjson.Get(raw, "type"))
	case "":
		r.fail(openai.CodeMissing, "tool_choice.type", "'tool_choice.type' is missing.")
	default:
		return r.demanded(kind)
	}
	return nil
}

func (r *reader) choiceNamed(space, name string) []byte {
	i := slices.IndexFunc(r.Tools.list, func(t Tool) bool { return t.Name == name && (space == "" || t.Space == space) })
	if i < 0 {
		r.fail(openai.CodeInvalidValue, "tool_choice", "'tool_choice' demands '%s', which is not in 'tools'.", name)
		return nil
	}
	out := rawjson.AppendString([]byte(`{"type":"function","function":{"name":`), r.Tools.list[i].flat)
	return append(out, "}}"...)
}

// choiceAmong leaves the tools out that the client does not allow.
func (r *reader) choiceAmong(raw []byte) []byte {
	allowed := rawjson.Get(raw, "tools")
	if inner := rawjson.Get(raw, "allowed_tools"); len(inner) > 0 && inner[0] == '{' { // as Chat Completions has it
		raw, allowed = inner, rawjson.Get(inner, "tools")
	}
	names, hosted := map[string]bool{}, []string(nil)
	for span := range rawjson.Elements(allowed) {
		t := span.Of(allowed)
		if inner := rawjson.Get(t, "function"); len(inner) > 0 && inner[0] == '{' {
			t = inner
		}
		if name := rawjson.Text(rawjson.Get(t, "name")); name != "" {
			names[name] = true
		} else {
			hosted = append(hosted, rawjson.Text(rawjson.Get(t, "type")))
		}
	}
	kept := newTools()
	for _, t := range r.Tools.list {
		if names[t.Name] || t.Space != "" && names[t.Space] {
			kept.put(t)
		}
	}
	mode := rawjson.Get(raw, "mode")
	kept.hosted = r.Tools.hosted
	r.Tools = kept
	if rawjson.Is(mode, "required") && len(kept.list) == 0 {
		return r.demanded(hosted...)
	}
	if len(mode) > 0 && mode[0] == '"' {
		return mode
	}
	return nil
}

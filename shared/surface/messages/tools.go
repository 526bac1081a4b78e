package messages

import (
	"slices"
	"strconv"
	"strings"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// tools translates the tools and how they may be chosen. Tools that Anthropic defines are left out beside others: no other provider has them. A request
// that demands one is refused.
func (r *request) tools(out rawjson.Object) (rawjson.Object, error) {
	var functions [][]byte
	var hosted []hostedTool
	for n, raw := range elements(r.in["tools"]) {
		tool, at := rawjson.Given(raw), "tools."+strconv.Itoa(n)
		if len(inner(tool["name"])) == 0 {
			return nil, refuse(openai.CodeMissing, at+".name", "Field required")
		}
		if !isFunction(tool["type"]) {
			hosted = append(hosted, hostedTool{name: rawjson.Text(tool["name"]), search: openai.IsSearchType(tool["type"])})
			continue
		}
		function := rawjson.Object(nil).Set("name", tool["name"]).Set("description", tool["description"]).Set("parameters", tool["input_schema"]).End()
		functions = append(functions, typed("function").Set("function", function).End())
	}
	choice := rawjson.Given(r.in["tool_choice"])
	kind, name := rawjson.Text(choice["type"]), rawjson.Text(choice["name"])
	var chosen []byte
	switch {
	case demandsSearch(choice["type"], choice["name"], hosted, len(functions) > 0): // the gateway has searched
		kind = "auto"
	case kind == "any" && len(functions) == 0 && len(hosted) > 0:
		return nil, notHere(hosted)
	}
	switch kind {
	case "", "auto":
	case "any":
		chosen = []byte(`"required"`)
	case "none":
		chosen = []byte(`"none"`)
	case "tool":
		if name == "" {
			return nil, refuse(openai.CodeMissing, "tool_choice.name", "Field required")
		}
		if i := slices.IndexFunc(hosted, func(t hostedTool) bool { return t.name == name }); i >= 0 {
			return nil, notHere(hosted[i : i+1])
		}
		chosen = typed("function").Set("function", rawjson.Object(nil).Set("name", choice["name"]).End()).End()
	default:
		return nil, refuse(openai.CodeInvalidValue, "tool_choice.type", "must be one of auto, any, tool and none")
	}
	if len(functions) == 0 { // nobody takes a choice without anything to choose from
		return out, nil
	}
	out = out.Set("tools", rawjson.Array(functions)).Set("tool_choice", chosen)
	if string(choice["disable_parallel_tool_use"]) == "true" && kind != "none" {
		out = out.Set("parallel_tool_calls", []byte("false"))
	}
	return out, nil
}

func notHere(hosted []hostedTool) error {
	names := make([]string, len(hosted))
	for i := range hosted {
		names[i] = hosted[i].name
	}
	return refuse(openai.CodeInvalidValue, "tool_choice", "the provider of this model does not have the tool %s", strings.Join(names, ", "))
}

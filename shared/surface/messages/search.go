package messages

import (
	"bytes"
	"slices"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// search notes whether the client offers a search of the web, or demands one.
func (r *scan) search() {
	if len(r.tools) == 0 {
		return
	}
	var hosted []hostedTool
	functions := false
	for span := range rawjson.Elements(r.tools) {
		if tool := span.Of(r.tools); isFunction(rawjson.Get(tool, "type")) {
			functions = true
		} else {
			hosted = append(hosted, hostedTool{name: rawjson.Text(rawjson.Get(tool, "name")), search: openai.IsSearchTool(tool)})
		}
	}
	r.req.Traits.Searches = slices.ContainsFunc(hosted, hostedTool.isSearch)
	if r.req.Traits.Searches && demandsSearch(rawjson.Get(r.choice, "type"), rawjson.Get(r.choice, "name"), hosted, functions) {
		i := slices.IndexFunc(hosted, hostedTool.isSearch)
		r.req.Web.Tool = openai.SearchName(hosted[i].name)
	}
}

// hostedTool is a tool that Anthropic defines.
type hostedTool struct {
	name   string
	search bool // of the web
}

func (t hostedTool) isSearch() bool { return t.search }

// isFunction says whether a tool of a type, as raw JSON, is one that the client runs itself.
func isFunction(kind []byte) bool {
	return len(kind) == 0 || bytes.Equal(kind, []byte("null")) || string(kind) == `""` || rawjson.Is(kind, "custom")
}

// demandsSearch says whether a choice leaves nothing but a search of the web, which is the gateway's.
func demandsSearch(kind, name []byte, hosted []hostedTool, functions bool) bool {
	switch rawjson.Text(kind) {
	case "any":
		return !functions && slices.ContainsFunc(hosted, hostedTool.isSearch)
	case "tool":
		chosen := rawjson.Text(name)
		return slices.ContainsFunc(hosted, func(t hostedTool) bool { return t.search && t.name == chosen })
	}
	return false
}

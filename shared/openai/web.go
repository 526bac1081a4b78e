package openai

import (
	"bytes"

	"hydrallm/shared/openai/rawjson"
)

// searchTool is what the types of tools begin with that have a provider search the web, such as web_search_preview and web_search_20250305.
const searchTool = "web_search"

// IsSearchTool says whether a tool, or a choice of one, is a search of the web that the provider runs, by its type.
func IsSearchTool(tool []byte) bool {
	return bytes.Contains(tool, []byte(searchTool)) && IsSearchType(rawjson.Get(tool, "type"))
}

// IsSearchType says whether a type, as raw JSON, is that of a search of the web that the provider runs.
func IsSearchType(raw []byte) bool { return bytes.HasPrefix(raw, []byte(`"`+searchTool)) }

// maxToolName bounds the name of a search that travels with a request, in bytes.
const maxToolName = 64

// SearchName is the name by which a client calls a search of the web, or a usual one where it gives none, or one that is no name.
func SearchName(name string) string {
	if name == "" || len(name) > maxToolName {
		return searchTool
	}
	return name
}

// MayHoldURL says whether there may be an address of the web in a text, as raw JSON. It may be wrong about what is none.
func MayHoldURL(raw []byte) bool {
	return bytes.Contains(raw, []byte("://")) || bytes.Contains(raw, []byte(`:\/\/`))
}

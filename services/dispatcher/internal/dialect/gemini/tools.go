package gemini

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// tool is one kind of tool: the functions of the client, or the search of Google.
type tool struct {
	FunctionDeclarations []declaration   `json:"functionDeclarations,omitempty"`
	GoogleSearch         json.RawMessage `json:"googleSearch,omitempty"`
}

type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type toolConfig struct {
	FunctionCallingConfig *callingConfig `json:"functionCallingConfig,omitempty"`
	// ServerSide lets a model use the search of Google beside functions.
	ServerSide bool `json:"includeServerSideToolInvocations,omitempty"`
}

type callingConfig struct {
	Mode    string   `json:"mode"`
	Allowed []string `json:"allowedFunctionNames,omitempty"`
}

// tools translates tools, tool_choice and web_search_options. Not every model may search and call functions, so search options alone never
// endanger the client's own tools: where there are some, only an entry among them asks for the search.
func (r *request) tools() error {
	if r.members["functions"].Exists() {
		return refuse("functions", "is not supported by this model: use 'tools'")
	}
	functions, search, err := readTools(r.members["tools"])
	if err != nil {
		return err
	}
	if options := r.members["web_search_options"]; options.Exists() && options.Type != gjson.False && len(functions) == 0 && search == nil {
		search = json.RawMessage("{}")
	}
	var config toolConfig
	if len(functions) > 0 {
		r.native.Tools = append(r.native.Tools, tool{FunctionDeclarations: functions})
		if config.FunctionCallingConfig, err = toolChoice(r.members["tool_choice"]); err != nil {
			return err
		}
	}
	if search != nil {
		r.native.Tools = append(r.native.Tools, tool{GoogleSearch: search})
		config.ServerSide = len(functions) > 0 && r.family.signs()
	}
	if config != (toolConfig{}) {
		r.native.ToolConfig = &config
	}
	return nil
}

func readTools(v gjson.Result) (functions []declaration, search json.RawMessage, err error) {
	for i, entry := range v.Array() {
		at := "tools[" + strconv.Itoa(i) + "]"
		if s := searchEntry(entry); s != nil {
			search = s
			continue
		}
		if kind := entry.Get("type").Str; kind != "function" {
			return nil, nil, refuse(at+".type", "is a kind of tool that this model does not have: "+quote(kind))
		}
		f := entry.Get("function")
		d := declaration{Name: NativeName(f.Get("name").Str), Description: f.Get("description").Str}
		if d.Name == "" {
			return nil, nil, refuse(at+".function.name", "must be the name of a function")
		}
		if p := f.Get("parameters"); p.IsObject() {
			d.Parameters = json.RawMessage(p.Raw)
		}
		functions = append(functions, d)
	}
	return functions, search, nil
}

// searchEntry gives the options of an entry that asks for the search of Google, or nil.
func searchEntry(entry gjson.Result) json.RawMessage {
	for _, name := range []string{"google_search", "googleSearch"} {
		switch options := entry.Get(name); {
		case options.IsObject():
			return json.RawMessage(options.Raw)
		case options.Exists(), entry.Get("type").Str == name:
			return json.RawMessage("{}")
		}
	}
	return nil
}

// toolChoice is nil when the model is left to decide by itself.
func toolChoice(v gjson.Result) (*callingConfig, error) {
	kind := v.Str
	if v.IsObject() {
		kind = v.Get("type").Str
	}
	switch kind {
	case "":
		return nil, nil
	case "auto":
		return &callingConfig{Mode: "AUTO"}, nil
	case "none":
		return &callingConfig{Mode: "NONE"}, nil
	case "required":
		return &callingConfig{Mode: "ANY"}, nil
	case "function":
		if name := v.Get("function.name").Str; name != "" {
			return &callingConfig{Mode: "ANY", Allowed: []string{NativeName(name)}}, nil
		}
		return nil, refuse("tool_choice.function.name", "must be the name of a function")
	case "allowed_tools":
		return allowedTools(v.Get("allowed_tools"))
	}
	return nil, refuse("tool_choice", "is a choice that this model does not know: "+quote(kind))
}

// allowedTools limits the model to some functions, which it must call or may.
func allowedTools(v gjson.Result) (*callingConfig, error) {
	c := &callingConfig{Mode: "VALIDATED"}
	if v.Get("mode").Str == "required" {
		c.Mode = "ANY"
	}
	for _, t := range v.Get("tools").Array() {
		if name := t.Get("function.name").Str; name != "" {
			c.Allowed = append(c.Allowed, NativeName(name))
		}
	}
	if len(c.Allowed) == 0 {
		return nil, refuse("tool_choice.allowed_tools.tools", "must name a function")
	}
	return c, nil
}

// NativeName gives the name of a function as Gemini takes it: "Must start with a letter or an underscore". What begins otherwise, perhaps after
// underscores, gets one more in front, which ClientName takes off again; so all names stay different, and answers need no memory of requests.
func NativeName(name string) string {
	if needsUnderscore(name) {
		return "_" + name
	}
	return name
}

// ClientName gives the name of a function as the client knows it.
func ClientName(native string) string {
	if name, found := strings.CutPrefix(native, "_"); found && needsUnderscore(name) {
		return name
	}
	return native
}

func needsUnderscore(name string) bool {
	name = strings.TrimLeft(name, "_")
	return name != "" && (name[0] == '-' || '0' <= name[0] && name[0] <= '9')
}

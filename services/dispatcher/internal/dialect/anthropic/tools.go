package anthropic

import (
	"fmt"
	"regexp"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// datedTool is the type of a tool that Anthropic defines, such as web_search_20250305.
var datedTool = regexp.MustCompile(`^[a-z_]+_\d{8}$`)

// readTools translates the tools and how they may be chosen.
func (r *request) readTools() error {
	if r.in["functions"] != nil {
		return refuse(openai.CodeInvalidValue, "functions", "is out of date and can't be sent to this provider; use tools")
	}
	given := r.in["tools"]
	if len(given) > 0 && given[0] != '[' {
		return refuse(openai.CodeInvalidType, "tools", "must be an array")
	}
	var tools [][]byte
	for t := range rawjson.Elements(given) {
		tool, err := toolOf(fmt.Sprintf("tools[%d]", len(tools)), t.Of(given))
		if err != nil {
			return err
		}
		tools = append(tools, tool)
	}
	if len(tools) > 0 {
		r.tools = array(tools)
		return r.readChoice()
	}
	// A history with calls is refused without tools; clients send one when they want no more calls, say for a summary.
	for _, name := range r.chat.called() {
		tools = append(tools, fields(nil).set("name", quote(name)).set("input_schema", schemaOf(nil)).end())
	}
	if r.tools = array(tools); r.tools != nil {
		r.choice = typed("none").end()
	}
	return nil
}

func toolOf(place string, raw []byte) ([]byte, error) {
	tool := rawjson.Given(raw)
	kind := rawjson.Text(tool["type"])
	if schema := tool["input_schema"]; schema != nil || datedTool.MatchString(kind) { // in Anthropic's own form
		if flat := flatSchema(schema); len(flat) != len(schema) {
			raw = rawjson.AppendSet(nil, raw, "input_schema", flat)
		}
		return raw, nil
	}
	if kind != "function" {
		return nil, refuse(openai.CodeInvalidValue, place+".type", "is %q, but this provider has no tools but functions", kind)
	}
	function := rawjson.Given(tool["function"])
	if len(inner(function["name"])) == 0 {
		return nil, refuse(openai.CodeMissing, place+".function.name", "is missing")
	}
	// strict has a counterpart, but with limits that OpenAI does not have; calls are good without it.
	return fields(nil).set("name", function["name"]).set("description", function["description"]).
		set("input_schema", schemaOf(function["parameters"])).set("cache_control", tool["cache_control"]).end(), nil
}

// schemaOf gives the schema of a tool's input, which must be an object.
func schemaOf(parameters []byte) []byte {
	if len(parameters) == 0 || parameters[0] != '{' {
		return []byte(`{"type":"object","properties":{}}`)
	}
	parameters = flatSchema(parameters)
	if rawjson.Is(rawjson.Get(parameters, "type"), "object") {
		return parameters
	}
	return rawjson.AppendSet(nil, parameters, "type", []byte(`"object"`))
}

// readChoice translates tool_choice and parallel_tool_calls.
func (r *request) readChoice() error {
	choice, name := "", []byte(nil)
	given := r.in["tool_choice"]
	parallel := string(r.in["parallel_tool_calls"]) != "false"
	if isString(given) {
		choice = rawjson.Text(given)
	} else if given != nil {
		in := rawjson.Given(given)
		choice = rawjson.Text(in["type"])
		name = in["name"] // of Anthropic's own form
		if choice == "function" {
			choice, name = "tool", rawjson.Given(in["function"])["name"]
		}
		parallel = parallel && string(in["disable_parallel_tool_use"]) != "true"
	}
	switch choice {
	case "":
		if parallel {
			return nil
		}
		choice = "auto"
	case "required":
		choice = "any"
	case "auto", "none", "any":
	case "tool":
		if len(inner(name)) == 0 {
			return refuse(openai.CodeMissing, "tool_choice", "must name a function")
		}
	default:
		return refuse(openai.CodeInvalidValue, "tool_choice", "is of a kind that this provider does not know")
	}
	r.forced = choice == "any" || choice == "tool"
	out := typed(choice)
	if choice == "tool" {
		out = out.set("name", name)
	}
	if !parallel && choice != "none" {
		out = out.set("disable_parallel_tool_use", []byte("true"))
	}
	r.choice = out.end()
	return nil
}

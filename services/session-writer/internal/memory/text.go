package memory

import (
	"slices"
	"strings"
	"unicode"

	"hydrallm/services/session-writer/internal/compress"
	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/openai/rawjson"
)

// sameLength is how many characters of two messages of one role have to be equal for them to be one.
const sameLength = 500

// conversation writes messages as a text, behind what an earlier summary kept of the time before. What two messages of one role begin with alike is there once.
func conversation(earlier string, list []store.Message) string {
	type key struct{ role, said string }
	seen := map[key]bool{}
	var b strings.Builder
	b.WriteString(earlier)
	for i := range list {
		said := textOf([]byte(list[i].Body))
		whole, begin := key{list[i].Role, said}, key{list[i].Role, compress.Prefix(said, sameLength)}
		if seen[whole] {
			continue
		}
		if seen[begin] {
			said = said[strings.LastIndexFunc(begin.said, unicode.IsSpace)+1:]
		}
		seen[whole], seen[begin] = true, true
		compress.Say(&b, speakerOf(list[i].Role), said)
	}
	return b.String()
}

func speakerOf(role string) string {
	switch role {
	case "assistant":
		return compress.Assistant
	case "system", "developer":
		return compress.System
	case "tool":
		return compress.Tool
	}
	return compress.User
}

// textOf gives what a message says: its texts, a mark for each other part, and the calls of tools.
func textOf(body []byte) string {
	var lines []string
	content := rawjson.Get(body, "content")
	if text := rawjson.Text(content); text != "" {
		lines = append(lines, text)
	}
	for span := range rawjson.Elements(content) {
		part := span.Of(content)
		switch text, kind := rawjson.Text(rawjson.Get(part, "text")), rawjson.Text(rawjson.Get(part, "type")); {
		case text != "":
			lines = append(lines, text)
		case kind == "thinking", kind == "reasoning":
		case kind != "":
			lines = append(lines, "["+strings.TrimSuffix(kind, "_url")+"]")
		default:
			lines = append(lines, rawjson.Text(part))
		}
	}
	calls := rawjson.Get(body, "tool_calls")
	for span := range rawjson.Elements(calls) {
		call := span.Of(calls)
		lines = append(lines, callOf(rawjson.Get(call, "function"), "arguments"), callOf(rawjson.Get(call, "custom"), "input"))
	}
	lines = append(lines, callOf(rawjson.Get(body, "function_call"), "arguments"), rawjson.Text(rawjson.Get(body, "refusal")))
	return strings.TrimSpace(strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n"))
}

func callOf(tool []byte, with string) string {
	if name := rawjson.Text(rawjson.Get(tool, "name")); name != "" {
		return "[calls " + name + " " + rawjson.Text(rawjson.Get(tool, with)) + "]"
	}
	return ""
}

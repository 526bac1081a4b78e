package messages

import (
	"strings"

	"hydrallm/shared/openai/rawjson"
)

// fromHub gives the role and the blocks that a message of Chat Completions has here, one of the user, the assistant or a tool.
func fromHub(raw []byte) (role string, blocks [][]byte) {
	in := rawjson.Given(raw)
	role = rawjson.Text(in["role"])
	switch role {
	case "tool":
		result := typed("tool_result").Set("tool_use_id", in["tool_call_id"])
		if text := textOf(in["content"]); text != "" {
			result = result.Text("content", text)
		}
		role, blocks = roleUser, [][]byte{result.End()}
	case roleAssistant:
		blocks = append(signedThinking(in["reasoning_details"]), partBlocks(in["content"])...)
		if refusal := in["refusal"]; len(inner(refusal)) > 0 {
			blocks = append(blocks, textPart(refusal))
		}
		for _, call := range elements(in["tool_calls"]) {
			blocks = append(blocks, toolUse(rawjson.Given(call)))
		}
	default:
		role, blocks = roleUser, partBlocks(in["content"])
	}
	return role, blocks
}

// ThinkingFormat is that of the entries of reasoning_details in which the dialect of Anthropic keeps thinking: only their signatures are Anthropic's.
const ThinkingFormat = "anthropic-claude-v1"

// signedThinking gives the thinking of an answer that a provider which speaks the protocol knows again.
func signedThinking(details []byte) (blocks [][]byte) {
	for _, raw := range elements(details) {
		entry := rawjson.Given(raw)
		switch {
		case !rawjson.Is(entry["format"], ThinkingFormat):
		case len(inner(entry["data"])) > 0:
			blocks = append(blocks, typed("redacted_thinking").Set("data", entry["data"]).End())
		case len(inner(entry["signature"])) > 0:
			blocks = append(blocks, typed("thinking").Set("thinking", quoted(inner(entry["text"]))).Set("signature", entry["signature"]).End())
		}
	}
	return blocks
}

// partBlocks gives the blocks of a content. Parts that Messages does not have become a text that names them.
func partBlocks(content []byte) (blocks [][]byte) {
	if isString(content) {
		if strings.TrimSpace(rawjson.Text(content)) == "" {
			return nil
		}
		return [][]byte{textPart(content)}
	}
	for _, raw := range elements(content) {
		part := rawjson.Given(raw)
		switch kind := rawjson.Text(part["type"]); {
		case isString(raw):
			blocks = append(blocks, textPart(raw))
		case len(inner(part["text"])) > 0:
			blocks = append(blocks, textPart(part["text"]))
		case kind == "image_url":
			url := rawjson.Get(part["image_url"], "url")
			if url == nil {
				url = part["image_url"]
			}
			blocks = append(blocks, typed("image").Set("source", imageSource(url)).End())
		case kind == "thinking", kind == "reasoning": // never visible text
		case kind != "" && kind != "text":
			blocks = append(blocks, typed("text").Text("text", "["+kind+"]").End())
		}
	}
	return blocks
}

func imageSource(url []byte) []byte {
	text := string(inner(url))
	if media, data, ok := strings.Cut(text, ";base64,"); ok && strings.HasPrefix(media, "data:") {
		return typed("base64").Set("media_type", quoted([]byte(media[len("data:"):]))).Set("data", quoted([]byte(data))).End()
	}
	return typed("url").Set("url", quoted([]byte(text))).End()
}

func toolUse(call map[string][]byte) []byte {
	if custom := rawjson.Given(call["custom"]); len(custom) > 0 { // its text is the one argument, as it is where tools of Responses become functions
		input := rawjson.Object(nil).Set("input", custom["input"]).End()
		return typed("tool_use").Set("id", call["id"]).Set("name", custom["name"]).Set("input", input).End()
	}
	function := rawjson.Given(call["function"])
	input := []byte(rawjson.Text(function["arguments"]))
	if len(input) == 0 || !rawjson.Valid(input) || strings.TrimSpace(string(input))[0] != '{' {
		input = []byte("{}")
	}
	return typed("tool_use").Set("id", call["id"]).Set("name", function["name"]).Set("input", input).End()
}

package anthropic

import (
	"strconv"
	"time"

	"hydrallm/shared/openai/rawjson"
)

// finishReason gives the reason in OpenAI's words, as raw JSON. Of reasons that are not known yet it knows at least that calls are to be
// answered (STR-09).
func finishReason(stop []byte, calls bool) string {
	switch string(inner(stop)) {
	case "max_tokens", "model_context_window_exceeded":
		return `"length"`
	case "refusal":
		return `"content_filter"`
	case "tool_use":
		return `"tool_calls"`
	}
	if calls {
		return `"tool_calls"`
	}
	return `"stop"` // end_turn, stop_sequence, pause_turn
}

// created is the moment of an answer, which the provider does not state.
func created() []byte { return strconv.AppendInt(nil, time.Now().Unix(), 10) }

// answer is a message while its blocks are being read. Texts are the inner parts of JSON strings.
type answer struct {
	text, thought  []byte
	details, calls [][]byte
}

// Completion translates a message. Blocks that a chat has no place for, such as what the provider's own tools found, are left out.
func (Translator) Completion(body []byte) []byte {
	if !rawjson.Valid(body) {
		return body
	}
	message := object(body)
	content := message["content"]
	if rawjson.Text(message["type"]) != "message" || len(content) == 0 || content[0] != '[' {
		return body
	}
	var a answer
	for b := range rawjson.Elements(content) {
		a.add(object(b.Of(content)))
	}
	choice := fields(nil).set("index", []byte("0")).set("message", a.message()).set("logprobs", []byte("null")).
		set("finish_reason", []byte(finishReason(message["stop_reason"], len(a.calls) > 0)))
	out := fields(nil).set("id", message["id"]).set("object", []byte(`"chat.completion"`)).set("created", created()).set("model", message["model"]).
		set("choices", array([][]byte{choice.end()}))
	var u usage
	if u.take(message["usage"]); u.known() {
		out = out.set("usage", u.appendTo(nil))
	}
	return out.end()
}

func (a *answer) add(b map[string][]byte) {
	switch rawjson.Text(b["type"]) {
	case "text":
		a.text = append(a.text, inner(b["text"])...)
	case "thinking":
		a.thought = append(a.thought, inner(b["thinking"])...)
		if d := detail(len(a.details), b["thinking"], b["signature"]); d != nil {
			a.details = append(a.details, d)
		}
	case "redacted_thinking":
		if d := hiddenDetail(len(a.details), b["data"]); d != nil {
			a.details = append(a.details, d)
		}
	case "tool_use":
		function := fields(nil).set("name", stringOr(b["name"])).set("arguments", arguments(b["input"])).end()
		a.calls = append(a.calls, fields(nil).set("id", stringOr(b["id"])).set("type", []byte(`"function"`)).set("function", function).end())
	}
}

// message gives the message of the choice.
func (a *answer) message() []byte {
	content := quoted(a.text)
	if len(a.text) == 0 && len(a.calls) > 0 {
		content = []byte("null")
	}
	m := fields(nil).set("role", []byte(`"assistant"`)).set("content", content).set("refusal", []byte("null"))
	if len(a.thought) > 0 {
		m = m.set("reasoning_content", quoted(a.thought))
	}
	return m.set("reasoning_details", array(a.details)).set("tool_calls", array(a.calls)).end()
}

// arguments gives the string for the input of a call (TOOL-07).
func arguments(input []byte) []byte {
	if len(input) == 0 || input[0] != '{' {
		return []byte(`"{}"`)
	}
	return quote(compact(input))
}

// quoted makes a raw string of its inner part.
func quoted(inner []byte) []byte {
	return append(append(append(make([]byte, 0, len(inner)+2), '"'), inner...), '"')
}

// stringOr gives a raw string as it is, and an empty one for anything else.
func stringOr(raw []byte) []byte {
	if isString(raw) {
		return raw
	}
	return []byte(`""`)
}

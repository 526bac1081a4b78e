package anthropic

import (
	"strconv"
	"time"

	"hydrallm/services/dispatcher/internal/answer"
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

// Completion translates a message. Blocks that a chat has no place for, such as what the provider's own tools found, are left out.
func (Translator) Completion(out *answer.Chunk, body []byte) bool {
	if !rawjson.Valid(body) {
		return false
	}
	message := rawjson.Given(body)
	content := message["content"]
	if rawjson.Text(message["type"]) != "message" || len(content) == 0 || content[0] != '[' {
		return false
	}
	out.ID, out.Created, out.Model = message["id"], created(), message["model"]
	w := whole{ch: out.Choose(0)}
	for b := range rawjson.Elements(content) {
		w.add(rawjson.Given(b.Of(content)))
	}
	w.end(message["stop_reason"])
	var u usage
	if u.take(message["usage"]); u.known() {
		out.Usage = u.appendTo(nil)
	}
	return true
}

// whole is a message while its blocks are being read. Texts are the inner parts of JSON strings.
type whole struct {
	ch            *answer.Choice
	text, thought []byte
	details       [][]byte
}

func (w *whole) add(b map[string][]byte) {
	switch rawjson.Text(b["type"]) {
	case "text":
		w.text = append(w.text, inner(b["text"])...)
	case "thinking":
		w.thought = append(w.thought, inner(b["thinking"])...)
		if d := detail(len(w.details), b["thinking"], b["signature"]); d != nil {
			w.details = append(w.details, d)
		}
	case "redacted_thinking":
		if d := hiddenDetail(len(w.details), b["data"]); d != nil {
			w.details = append(w.details, d)
		}
	case "tool_use":
		w.ch.Calls = append(w.ch.Calls, answer.Call{
			Index: -1, ID: stringOr(b["id"]), Type: functionType, Name: stringOr(b["name"]), Args: arguments(b["input"]),
		})
	}
}

// end fills the rest of the choice.
func (w *whole) end(stop []byte) {
	ch := w.ch
	ch.Role, ch.Content, ch.Refusal, ch.Logprobs = assistant, quoted(w.text), null, null
	if len(w.text) == 0 && len(ch.Calls) > 0 {
		ch.Content = null
	}
	if len(w.thought) > 0 {
		ch.ReasoningContent = quoted(w.thought)
	}
	if len(w.details) > 0 {
		ch.Delta, ch.Extra = reasoningDetails(w.details...), true
	}
	ch.Finish = []byte(finishReason(stop, len(ch.Calls) > 0))
}

var null = []byte("null")

// reasoningDetails gives an object with the entries.
func reasoningDetails(entries ...[]byte) []byte {
	return fields(nil).set("reasoning_details", array(entries)).end()
}

// arguments gives the string for the input of a call (TOOL-07).
func arguments(input []byte) []byte {
	if len(input) == 0 || input[0] != '{' {
		return []byte(`"{}"`)
	}
	return quote(compact(input))
}

// quoted makes a raw string of its inner part.
func quoted(inner []byte) []byte { return answer.Quoted(inner) }

// stringOr gives a raw string as it is, and an empty one for anything else.
func stringOr(raw []byte) []byte {
	if isString(raw) {
		return raw
	}
	return []byte(`""`)
}

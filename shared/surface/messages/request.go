package messages

import (
	"slices"
	"strconv"
	"strings"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Chat translates a request. What Chat Completions has no counterpart for and an answer does not depend on is left out.
func (Form) Chat(body []byte) ([]byte, error) {
	r := request{in: rawjson.Given(body)}
	if r.in["thread"] != nil {
		return nil, noThread()
	}
	messages, err := r.messages()
	if err != nil {
		return nil, err
	}
	out := rawjson.Object(nil).Set("model", r.in["model"]).Set("messages", messages)
	if out, err = r.tools(out); err != nil {
		return nil, err
	}
	out = out.Set("max_tokens", r.in["max_tokens"])
	if stop := r.in["stop_sequences"]; len(elements(stop)) > 0 {
		out = out.Set("stop", stop)
	}
	out = out.Set("temperature", r.in["temperature"]).Set("top_p", r.in["top_p"]).Set("reasoning_effort", r.effort()).Set("response_format", r.format())
	if string(r.in["stream"]) == "true" {
		out = out.Set("stream", []byte("true")).Set("stream_options", []byte(`{"include_usage":true}`))
	}
	return out.End(), nil
}

func noThread() error {
	return &openai.RequestError{
		Code: codeNoThread, Param: "thread", Message: "thread: the provider of this model keeps no conversations: send all messages, without a thread",
	}
}

// request is one under translation.
type request struct {
	in map[string][]byte

	out     [][]byte
	open    []string // calls of the last answer without a result
	pending [][]byte // what the user says beside results, which come first
}

// attribution begins a block that Claude Code puts before the others. It differs from request to request, and would spoil the cache of prompts.
const attribution = "x-anthropic-billing-header:"

// messages translates the system's text and the messages. They come one by one, but all that one side says before the other does belongs together: the
// results of tools follow the calls, before anything else.
func (r *request) messages() ([]byte, error) {
	text, web := systemText(r.in["system"])
	if text != "" {
		r.out = append(r.out, rawjson.Object(nil).Text("role", roleSystem).Text("content", text).End())
	}
	all := elements(r.in["messages"])
	loop := loopFrom(all)
	for n, raw := range all {
		m, err := readMessage(place(n), raw)
		if err != nil {
			return nil, err
		}
		if err := r.add(place(n), m, n >= loop); err != nil {
			return nil, err
		}
	}
	r.endTurn()
	if last := len(r.out) - 1; web != "" && last >= 0 {
		r.out = slices.Insert(r.out, last, rawjson.Object(nil).Text("role", roleSystem).Text("name", contract.WebContextName).Text("content", web).End())
	}
	return rawjson.Array(r.out), nil
}

// systemText gives the text of the member system, and the one from the web that WithContext put behind it.
func systemText(system []byte) (own, web string) {
	var texts []string
	if isString(system) {
		texts = append(texts, rawjson.Text(system))
	}
	for _, b := range elements(system) {
		if text := rawjson.Text(rawjson.Get(b, "text")); text != "" && !strings.HasPrefix(text, attribution) {
			texts = append(texts, text)
		}
	}
	if last := len(texts) - 1; last >= 0 && strings.HasPrefix(texts[last], contract.WebContextBegin) {
		texts, web = texts[:last], texts[last]
	}
	return strings.Join(texts, "\n\n"), web
}

// loopFrom gives the first message behind the last words of the user: from there on the model works with tools, and some want to see again what they
// thought.
func loopFrom(all [][]byte) int {
	for n, message := range slices.Backward(all) {
		if !rawjson.Is(rawjson.Get(message, "role"), roleUser) {
			continue
		}
		content := rawjson.Get(message, "content")
		if isString(content) || slices.ContainsFunc(elements(content), func(b []byte) bool { return !rawjson.Is(rawjson.Get(b, "type"), "tool_result") }) {
			return n + 1
		}
	}
	return len(all)
}

func (r *request) add(at string, m *message, inLoop bool) error {
	if m.role == roleAssistant {
		return r.answer(at, m, inLoop)
	}
	for _, result := range m.results {
		i := slices.Index(r.open, result.call)
		if i < 0 {
			return refuse(openai.CodeInvalidValue, result.place, "unexpected tool_use_id found in tool_result blocks: %s. "+
				"Each tool_result block must have a corresponding tool_use block in the previous message", strconv.Quote(result.call))
		}
		r.open = slices.Delete(r.open, i, i+1)
		r.out = append(r.out, result.body)
	}
	if said := m.said(); said != nil {
		r.pending = append(r.pending, said)
	}
	return nil
}

func (r *request) answer(at string, m *message, inLoop bool) error {
	r.endTurn()
	slices.Sort(m.calls)
	if len(slices.Compact(slices.Clone(m.calls))) < len(m.calls) {
		return refuse(openai.CodeInvalidValue, at, "tool_use ids must be unique")
	}
	r.open = m.calls
	body := m.body
	if body == nil {
		return nil
	}
	if inLoop && len(m.thought) > 0 {
		body = rawjson.AppendSet(nil, body, "reasoning_content", quoted(m.thought))
	}
	r.out = append(r.out, body)
	return nil
}

// noResult is that of a call without one, say because the client gave up: a conversation with such a call is refused.
const noResult = "There is no result."

// endTurn ends what the user says before the next answer.
func (r *request) endTurn() {
	for _, id := range r.open {
		r.out = append(r.out, rawjson.Object(nil).Text("role", "tool").Text("tool_call_id", id).Text("content", noResult).End())
	}
	r.out = append(r.out, r.pending...)
	r.open, r.pending = nil, nil
}

// effort gives the reasoning_effort for what the client says of thinking, nil for nothing. A budget of tokens is the effort whose budget is nearest.
func (r *request) effort() []byte {
	switch thinking := rawjson.Given(r.in["thinking"]); rawjson.Text(thinking["type"]) {
	case "enabled":
		budget, err := strconv.ParseInt(string(thinking["budget_tokens"]), 10, 64)
		switch {
		case err != nil:
			return nil
		case budget < lowBelow:
			return []byte(`"low"`)
		case budget < mediumBelow:
			return []byte(`"medium"`)
		}
		return []byte(`"high"`)
	case "adaptive":
		switch effort := rawjson.Text(rawjson.Get(r.in["output_config"], "effort")); effort {
		case "low", "medium", "high":
			return rawjson.AppendString(nil, effort)
		case "xhigh", "max": // few know more than high
			return []byte(`"high"`)
		}
	}
	return nil
}

// Budgets between the efforts of which the dialect of Anthropic makes 2048, 8192 and 16384 tokens.
const (
	lowBelow    = 5120
	mediumBelow = 12288
)

// format gives the response_format for a schema of the answer, nil for none.
func (r *request) format() []byte {
	format := rawjson.Given(rawjson.Get(r.in["output_config"], "format"))
	if len(format) == 0 {
		format = rawjson.Given(r.in["output_format"])
	}
	if rawjson.Text(format["type"]) != "json_schema" || format["schema"] == nil {
		return nil
	}
	schema := rawjson.Object(nil).Text("name", "answer").Set("schema", format["schema"]).Set("strict", []byte("true")).End()
	return typed("json_schema").Set("json_schema", schema).End()
}

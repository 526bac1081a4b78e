package mockllm

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// turn decides what the mock does: what the last message of the user says, as far as it has come; what tools, format and limits of the request
// demand; else it repeats what it hears.
func (req *request) turn() turn {
	asked := req.lastQuestion()
	var t turn
	turns := req.script(asked)
	step := 0 // how many turns with tools there were since
	for _, m := range req.Messages[asked+1:] {
		if len(m.ToolCalls) > 0 {
			step++
		}
	}
	if step < len(turns) {
		t = turns[step]
	}
	if t.empty() && step == 0 {
		t.calls = req.demanded()
	}
	for i := range t.calls {
		t.calls[i].id = callID(len(req.Messages), i, t.calls[i])
	}
	if t.empty() {
		t.text = new(req.formatted(req.answer(asked)))
	}
	if t.reasoning == "" && req.thinks() {
		t.reasoning = "The user wants an answer. It is easy to give."
	}
	if t.tags {
		text := "<think>" + t.reasoning + "</think>"
		if t.text != nil {
			text += *t.text
		}
		t.text, t.reasoning = &text, ""
	}
	req.limit(&t)
	if t.usage == nil {
		t.usage = req.count(&t)
	}
	return t
}

// empty says that nothing is said yet.
func (t *turn) empty() bool { return t.text == nil && t.refusal == "" && len(t.calls) == 0 }

// script reads the parts of a message, the last one first: programs put their own words before those of their user. Without parallel calls each
// call is a turn of its own. Without tools there are no calls.
func (req *request) script(asked int) []turn {
	if asked < 0 {
		return nil
	}
	var turns []turn
	for _, text := range slices.Backward(texts(req.Messages[asked].Content)) {
		if turns = script(text, req); turns != nil {
			break
		}
	}
	if req.ParallelToolCalls == nil || *req.ParallelToolCalls {
		return turns
	}
	var single []turn
	for _, t := range turns {
		calls := t.calls
		t.calls = calls[:min(1, len(calls))]
		single = append(single, t)
		for _, c := range calls[min(1, len(calls)):] {
			single = append(single, turn{calls: []call{c}})
		}
	}
	return single
}

// lastQuestion finds the last message of the user, or gives -1.
func (req *request) lastQuestion() int {
	for i, m := range slices.Backward(req.Messages) {
		if m.Role == "user" {
			return i
		}
	}
	return -1
}

// functions are the tools that may be called.
func (req *request) functions() []tool {
	if string(req.ToolChoice) == `"none"` {
		return nil
	}
	return req.Tools
}

// demanded are the calls that tool_choice insists on.
func (req *request) demanded() []call {
	var named struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if string(req.ToolChoice) == `"required"` && len(req.Tools) > 0 {
		return []call{req.Tools[0].example()}
	}
	if json.Unmarshal(req.ToolChoice, &named) != nil {
		return nil
	}
	for _, f := range req.Tools {
		if f.Function.Name == named.Function.Name {
			return []call{f.example()}
		}
	}
	return nil
}

// example is a call of the tool with arguments that fit its schema.
func (f tool) example() call {
	return call{name: f.Function.Name, arguments: string(exampleObject(f.Function.Parameters))}
}

// answer is what the mock says when it is not told what: what tools answered, or what it heard.
func (req *request) answer(asked int) string {
	names := map[string]string{}
	var results []string
	for _, m := range req.Messages[asked+1:] {
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Function.Name
			results = nil // those of the last turn count
		}
		if m.Role == "tool" {
			results = append(results, "The tool "+names[m.ToolCallID]+" answered: "+strings.Join(texts(m.Content), " "))
		}
	}
	if len(results) > 0 {
		return strings.Join(results, "\n")
	}
	heard := req.Messages[len(req.Messages)-1]
	if asked >= 0 {
		heard = req.Messages[asked]
	}
	return "You said: " + strings.Join(texts(heard.Content), " ") + " - and this is the built-in mock upstream, which repeats what it hears."
}

// formatted puts an answer into the format that the request asks for.
func (req *request) formatted(text string) string {
	switch req.ResponseFormat.Type {
	case "json_object":
		return string(encode(map[string]string{"answer": text}))
	case "json_schema":
		return string(exampleObject(req.ResponseFormat.JSONSchema.Schema))
	}
	return text
}

func (req *request) thinks() bool {
	return req.ReasoningEffort != "" && req.ReasoningEffort != "none" && req.ReasoningEffort != "minimal"
}

// limit cuts the text at a stop sequence and at the largest number of tokens, and says why the answer ends.
func (req *request) limit(t *turn) {
	reason := "stop"
	if len(t.calls) > 0 {
		reason = "tool_calls"
	}
	if t.text != nil {
		text := *t.text
		for _, stop := range req.stops() {
			text, _, _ = strings.Cut(text, stop)
		}
		if most := req.mostTokens(); most > 0 {
			if words := strings.SplitAfter(text, " "); len(words) > most {
				text, reason = strings.Join(words[:most], ""), "length"
			}
		}
		t.text = &text
	}
	if t.finish == "" {
		t.finish = reason
	}
}

func (req *request) stops() []string {
	var one string
	if json.Unmarshal(req.Stop, &one) == nil && one != "" {
		return []string{one}
	}
	var several []string
	if json.Unmarshal(req.Stop, &several) != nil {
		return nil
	}
	return slices.DeleteFunc(several, func(s string) bool { return s == "" })
}

func (req *request) mostTokens() int {
	for _, most := range []*int{req.MaxCompletionTokens, req.MaxTokens} {
		if most != nil {
			return *most
		}
	}
	return 0
}

// count counts words, which is near enough for a mock.
func (req *request) count(t *turn) *usage {
	words := func(text string) int { return len(strings.Fields(text)) }
	u := &usage{}
	for _, m := range req.Messages {
		for _, text := range texts(m.Content) {
			u.Prompt += words(text)
		}
		for _, c := range m.ToolCalls {
			u.Prompt += 1 + words(c.Function.Arguments)
		}
	}
	if t.text != nil {
		u.Completion += words(*t.text)
	}
	for _, c := range t.calls {
		u.Completion += 1 + words(c.arguments)
	}
	u.Completion += words(t.refusal)
	if thought := words(t.reasoning); thought > 0 {
		u.Completion += thought
		u.Details = &reasoningDetails{Reasoning: thought * req.choices()}
	}
	u.Completion *= req.choices()
	u.Total = u.Prompt + u.Completion
	return u
}

func (req *request) choices() int {
	if req.N == nil {
		return 1
	}
	return *req.N
}

// texts gives the texts of a message, which may come in parts.
func texts(content any) []string {
	switch c := content.(type) {
	case string:
		return []string{c}
	case []any:
		var found []string
		for _, part := range c {
			if m, ok := part.(map[string]any); ok {
				if text, ok := m["text"].(string); ok {
					found = append(found, text)
				}
			}
		}
		return found
	}
	return nil
}

// identity names something by what it is made of, so that it is the same for the same request.
func identity(prefix string, parts ...string) string {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write(append([]byte(p), 0)) // a hash takes everything
	}
	return prefix + strconv.FormatUint(h.Sum64(), 16)
}

func callID(message, i int, c call) string {
	return identity("call_mock_", strconv.Itoa(message), strconv.Itoa(i), c.name, c.arguments)
}

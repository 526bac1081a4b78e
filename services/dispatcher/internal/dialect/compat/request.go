package compat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Request adapts a request to Chat Completions for a vendor. The body is returned as it is, not copied, when nothing has to change, which is
// always so for a vendor that is not known. Adapting the result again changes nothing. The error, an *openai.RequestError, says that the body
// is not valid JSON, or that the vendor does not take a part of it without which it would say something else.
func Request(vendor string, body []byte) ([]byte, error) { return RequestKeeping(vendor, body, nil) }

// RequestKeeping is Request, but members of the request whose name keep knows stay as they are: the operator has set them, and means it
// . keep may be nil.
func RequestKeeping(vendor string, body []byte, keep func(name string) bool) ([]byte, error) {
	v := vendors[vendor]
	if v == nil {
		return body, nil
	}
	r := request{rules: v, body: body, s: rawjson.Scan(body), keeps: keep, lastRole: otherRole}
	r.scan()
	if !r.s.End() {
		return nil, &openai.RequestError{
			Message: fmt.Sprintf("The request body is not valid JSON: %v.", r.s.Err()), Code: openai.CodeInvalidJSON,
		}
	}
	if r.lost != "" {
		return nil, &openai.RequestError{
			Message: "'messages' hold a part of the type '" + r.lost + "', which this provider does not take.", Param: "messages", Code: openai.CodeInvalidValue,
		}
	}
	return r.edits.apply(body), nil
}

// request is one body under adaptation. Its members are judged after all of them were seen, since some depend on others.
type request struct {
	*rules
	body  []byte
	s     rawjson.Scanner
	edits edits
	keeps func(name string) bool

	members []member
	model   string // in lower case
	effort  string // reasoning_effort
	tools   bool   // there is at least one tool

	fields []member       // of the message that is read
	texts  []rawjson.Span // of the content that is read: its parts of text
	calls  []call         // of the history, for vendors that want results to name the tool

	hasCalls bool   // the history has tool calls
	bare     []slot // messages of the assistant without reasoning, for vendors that want it back
	lastRole role   // of the last message that stays
	last     slot   // where that message can be marked as one to continue
	lost     string // type of a part that the vendor does not take; "" = none
}

// member is one member of an object, by its place in the body.
type member struct {
	name       []byte
	key, value rawjson.Span
}

// call is a tool call of the history: raw JSON strings.
type call struct{ id, name []byte }

// slot is a place for a member of an object: the value of one that is there, or the end of the object.
type slot struct {
	value   rawjson.Span // zero when the member is not there
	closing int
	comma   bool
}

// put gives the member a value.
func (s slot) put(e *edits, name, value string) {
	if !s.value.IsZero() {
		e.replace(s.value.Start, s.value.End, value)
		return
	}
	c := items{kept: s.comma}
	c.add(e, s.closing, `"`+name+`":`+value)
}

func (r *request) scan() {
	if !r.s.Enter('{') {
		return
	}
	r.members = make([]member, 0, 16)
	for r.s.Member() {
		m := member{name: r.s.Key(), key: r.s.KeySpan()}
		start := r.s.Pos()
		switch string(m.name) {
		case "messages":
			r.messages()
		case "tools":
			r.toolList()
		case "stream_options":
			r.streamOptions()
		case "model":
			r.model = strings.ToLower(rawjson.Text(r.s.Skip().Of(r.body)))
		case "reasoning_effort":
			r.effort = rawjson.Text(r.s.Skip().Of(r.body))
		default:
			r.s.Skip()
		}
		m.value = rawjson.Span{Start: start, End: r.s.Pos()}
		r.members = append(r.members, m)
	}
	if r.s.Failed() {
		return
	}
	r.finishHistory()
	var c items
	for i := range r.members {
		m := &r.members[i]
		r.judge(&c, m.key.Start, m.value.End, r.isKept(m) || r.stays(m))
	}
}

func (r *request) isKept(m *member) bool { return r.keeps != nil && r.keeps(string(m.name)) }

// value gives the raw value of a member, or nil.
func (r *request) value(name string) []byte {
	for _, m := range slices.Backward(r.members) {
		if string(m.name) == name {
			return m.value.Of(r.body)
		}
	}
	return nil
}

// given says whether there is a member with a value that is not null.
func (r *request) given(name string) bool { v := r.value(name); return v != nil && v[0] != 'n' }

// stays judges a member of the request. One that stays may be changed.
func (r *request) stays(m *member) bool {
	value := m.value.Of(r.body)
	switch string(m.name) {
	case "max_tokens", "max_completion_tokens":
		return r.limitStays(m)
	case "reasoning_effort":
		if !r.effortStays(m, value) {
			return false
		}
	case "temperature":
		r.cool(m, value)
	case "tools":
		return r.tools && !r.silenced()
	case "tool_choice":
		return r.choiceStays(m, value)
	case "parallel_tool_calls":
		if !r.tools || r.silenced() {
			return false
		}
	case "response_format":
		if r.noJSONMode && rawjson.Is(rawjson.Get(value, "type"), "json_object") {
			return false
		}
	case "reasoning_format":
		if r.reasoningFormat && rawjson.Is(value, "raw") && (r.tools || r.given("response_format")) {
			r.edits.replace(m.value.Start, m.value.End, `"parsed"`)
		}
	case "include_reasoning":
		if r.reasoningFormat && r.given("reasoning_format") {
			return false
		}
	}
	if r.fixedSampling && isSampling(m.name) && refusesSampling(r.model, r.effort) {
		return false
	}
	for _, pair := range r.rename {
		if string(m.name) == pair[0] {
			if r.value(pair[1]) != nil {
				return false
			}
			r.edits.replace(m.key.Start, m.key.End, `"`+pair[1]+`"`)
			return true
		}
	}
	return !contains(r.leaves, m.name) && (r.takes == nil || contains(r.takes, m.name))
}

func contains(names []string, name []byte) bool { return slices.Contains(names, string(name)) }

// limitStays moves the bound of the answer to the only name that the vendor has for it. Where both are given, OpenAI heeds
// max_completion_tokens.
func (r *request) limitStays(m *member) bool {
	if r.limit == "" {
		return true
	}
	newer, older := r.value("max_completion_tokens"), r.value("max_tokens")
	bound := newer
	if !r.given("max_completion_tokens") && r.given("max_tokens") {
		bound = older
	}
	switch {
	case string(m.name) == r.limit:
		if newer != nil && older != nil && string(bound) != string(m.value.Of(r.body)) {
			r.edits.replace(m.value.Start, m.value.End, string(bound))
		}
		return true
	case r.value(r.limit) != nil:
		return false
	}
	r.edits.replace(m.key.Start, m.key.End, `"`+r.limit+`"`)
	return true
}

// effortStays puts reasoning_effort in the words of the model.
func (r *request) effortStays(m *member, value []byte) bool {
	if r.thinkingConfig && r.finerThinking() {
		return false
	}
	for i := range r.efforts {
		e := &r.efforts[i]
		if !e.fits(r.model) {
			continue
		}
		if e.off && r.effort == "none" {
			if r.value("thinking") != nil {
				return false
			}
			r.edits.replace(m.key.Start, m.value.End, `"thinking":{"type":"disabled"}`)
			return true
		}
		if e.as == nil {
			return true
		}
		word, ok := e.as[r.effort]
		if ok && word != r.effort {
			r.edits.replace(m.value.Start, m.value.End, `"`+word+`"`)
		}
		return ok || value[0] == 'n'
	}
	return true
}

// finerThinking says whether the request controls Gemini's thinking in Gemini's own words, which do not go together with reasoning_effort.
func (r *request) finerThinking() bool {
	return rawjson.Get(rawjson.Get(r.value("extra_body"), "google"), "thinking_config") != nil
}

// cool brings temperature into the range of the vendor.
func (r *request) cool(m *member, value []byte) {
	if r.temperature == (temperatureRange{}) {
		return
	}
	t, err := strconv.ParseFloat(string(value), 64)
	switch {
	case err != nil:
	case t < r.temperature.low:
		r.edits.replace(m.value.Start, m.value.End, r.temperature.lowText)
	case t > r.temperature.high:
		r.edits.replace(m.value.Start, m.value.End, r.temperature.highText)
	}
}

// silenced says whether the model must not use tools, and the vendor can only be told so by leaving them out.
func (r *request) silenced() bool {
	return r.choice.ignored && rawjson.Is(r.value("tool_choice"), "none")
}

// choiceStays puts tool_choice into a form that the vendor takes. Without tools it means nothing, and many refuse it then.
func (r *request) choiceStays(m *member, value []byte) bool {
	if !r.tools || r.choice.ignored {
		return false
	}
	word := ""
	switch {
	case rawjson.Is(value, "any") && !r.choice.any:
		word = "required"
	case value[0] != '{':
	case rawjson.Is(rawjson.Get(value, "type"), "allowed_tools"):
		if r.choice.allowed {
			break
		}
		word = "auto"
		if rawjson.Is(rawjson.Get(rawjson.Get(value, "allowed_tools"), "mode"), "required") {
			word = "required"
		}
	case r.choice.unnamed:
		word = "required"
	}
	if word != "" {
		r.edits.replace(m.value.Start, m.value.End, `"`+word+`"`)
	}
	return true
}

// streamOptions reads stream_options.
func (r *request) streamOptions() {
	if !r.usage {
		r.s.Skip()
		return
	}
	if !r.s.Enter('{') {
		return
	}
	var c items
	for r.s.Member() {
		key, known := r.s.KeySpan(), string(r.s.Key()) == "include_usage"
		r.judge(&c, key.Start, r.s.Skip().End, known)
	}
}

// toolList reads tools.
func (r *request) toolList() {
	if !r.s.Enter('[') {
		return
	}
	for r.s.Element() {
		r.tools = true
		if !r.s.Enter('{') {
			continue
		}
		var c items
		for r.s.Member() {
			key, name := r.s.KeySpan(), r.s.Key()
			marks := !r.keepsCacheControl && string(name) == "cache_control"
			if string(name) == "function" {
				r.function()
			} else {
				r.s.Skip()
			}
			r.judge(&c, key.Start, r.s.Pos(), !marks)
		}
	}
}

// function reads the definition of a tool.
func (r *request) function() {
	if !r.s.Enter('{') {
		return
	}
	var c items
	for r.s.Member() {
		key, marks := r.s.KeySpan(), !r.keepsCacheControl && string(r.s.Key()) == "cache_control"
		r.judge(&c, key.Start, r.s.Skip().End, !marks)
	}
}

// judge keeps an item or leaves it out.
func (r *request) judge(c *items, start, end int, keep bool) {
	if keep {
		c.keep(&r.edits, start, end)
	} else {
		c.drop(&r.edits, start, end)
	}
}

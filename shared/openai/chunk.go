package openai

import (
	"bytes"

	"hydrallm/shared/openai/rawjson"
)

// Chunk is what one JSON text from an upstream says: a chat.completion.chunk of a stream, or a whole chat.completion (then Plain is set).
// Nothing is decoded; everything is found by position in Data. A Chunk is reused by calling Parse again. The zero value is ready for use.
type Chunk struct {
	Data []byte

	Valid bool // Data is one JSON object; nothing else is set if not, except Error for an array of errors
	Plain bool // the choices hold messages: a whole answer, not a piece of a stream

	// Error is where an error is reported, in any of the forms that upstreams use; zero when there is none.
	Error rawjson.Span
	// NullError says that there is a member "error" without meaning (null, false or empty). Some clients take it for an error.
	NullError bool

	HasChoices bool // the member "choices" is an array
	Choices    []Choice

	// Usage is the object of the token counts, from the top level or else from x_groq; zero when there is none.
	Usage rawjson.Span
	// UsageInside says that Usage was not at the top level.
	UsageInside bool

	ID, Object, Created, Model rawjson.Span // raw values
}

// Choice is one element of the choices of a Chunk. Spans are raw values in the chunk's Data; zero when absent.
type Choice struct {
	Span  rawjson.Span // the whole element
	Index int          // 0 when absent or no number
	// NoIndex says that the member "index" is missing, or no number that clients can use as an index.
	NoIndex bool
	Delta   rawjson.Span // the object "delta" or "message"

	Role, Content, Refusal, ToolCalls, FunctionCall rawjson.Span
	ReasoningContent, Reasoning                     rawjson.Span // two names of the same thing
	Finish                                          rawjson.Span // finish_reason
	Logprobs                                        rawjson.Span

	// Extra says that the delta has other members that are not null (annotations, audio, reasoning_details, ...).
	Extra bool
}

// Parse reads data. The Chunk aliases it until the next Parse.
func (c *Chunk) Parse(data []byte) {
	*c = Chunk{Data: data, Choices: c.Choices[:0]}
	p := chunkScan{Chunk: c, s: rawjson.Scan(data)}
	if p.s.Kind() == '[' {
		p.array()
		return
	}
	start := p.s.Pos()
	p.object()
	if c.Valid = p.s.End() && data[start] == '{'; !c.Valid {
		*c = Chunk{Data: data, Choices: c.Choices[:0]}
		return
	}
	if p.flat && !c.HasChoices && c.Error.IsZero() {
		c.Error = rawjson.Span{Start: start, End: len(data)}
	}
}

// Finished says whether the choice ends with this chunk.
func (ch *Choice) Finished(data []byte) bool { return !emptyValue(ch.Finish.Of(data)) }

// HasOutput says whether the choice brings anything that a client shows or runs: text, reasoning, a refusal or a call.
func (ch *Choice) HasOutput(data []byte) bool {
	return !emptyValue(ch.Content.Of(data)) || !emptyValue(ch.ReasoningContent.Of(data)) || !emptyValue(ch.Reasoning.Of(data)) ||
		!emptyValue(ch.ToolCalls.Of(data)) || !emptyValue(ch.FunctionCall.Of(data)) || !emptyValue(ch.Refusal.Of(data))
}

// Decisive says whether the chunk settles that the upstream works: it has output or a finish reason.
func (c *Chunk) Decisive() bool {
	for i := range c.Choices {
		if ch := &c.Choices[i]; ch.HasOutput(c.Data) || ch.Finished(c.Data) {
			return true
		}
	}
	return false
}

// HasOutput says whether any choice has output.
func (c *Chunk) HasOutput() bool {
	for i := range c.Choices {
		if c.Choices[i].HasOutput(c.Data) || c.Choices[i].Extra {
			return true
		}
	}
	return false
}

// UsageOnly says whether the chunk does nothing but report usage.
func (c *Chunk) UsageOnly() bool { return len(c.Choices) == 0 && !c.Usage.IsZero() }

// emptyValue says whether a raw value is absent, null, false, or an empty string, array or object.
func emptyValue(raw []byte) bool {
	if len(raw) == 0 {
		return true
	}
	switch raw[0] {
	case '"':
		return len(raw) == 2
	case '[', '{':
		return len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
	case 'n', 'f':
		return true
	}
	return false
}

// chunkScan is a Chunk while it is being read.
type chunkScan struct {
	*Chunk
	s    rawjson.Scanner
	flat bool // has the members of an error that is not wrapped in "error"
}

// array reads an array, in which some upstreams wrap their error object.
func (p *chunkScan) array() {
	start := p.s.Pos()
	p.s.Enter('[')
	for first := true; p.s.Element(); first = false {
		if first {
			p.object()
		} else {
			p.s.Skip()
		}
	}
	isError := !p.Error.IsZero() || p.flat && !p.HasChoices
	*p.Chunk = Chunk{Data: p.Data, Choices: p.Choices[:0]}
	if p.s.End() && isError {
		p.Error = rawjson.Span{Start: start, End: len(p.Data)}
	}
}

func (p *chunkScan) object() {
	if !p.s.Enter('{') {
		return
	}
	for p.s.Member() {
		switch string(p.s.Key()) {
		case "id":
			p.ID = p.s.Skip()
		case "object":
			p.Object = p.s.Skip()
			p.flat = p.flat || rawjson.Is(p.Object.Of(p.Data), "error")
		case "created":
			p.Created = p.s.Skip()
		case "model":
			p.Model = p.s.Skip()
		case "choices":
			p.choices()
		case "usage":
			p.usage(false)
		case "error":
			p.error()
		case "message", "detail":
			p.flat = p.flat || p.s.Kind() != 'n'
			p.s.Skip()
		case "x_groq":
			p.groq()
		case "base_resp":
			p.baseResponse()
		default:
			p.s.Skip()
		}
	}
}

func (p *chunkScan) error() {
	value := p.s.Skip()
	if emptyValue(value.Of(p.Data)) {
		p.NullError = true
	} else {
		p.Error = value
	}
}

func (p *chunkScan) usage(inside bool) {
	isObject := p.s.Kind() == '{'
	value := p.s.Skip()
	if isObject && !emptyValue(value.Of(p.Data)) && (!inside || p.Usage.IsZero()) {
		p.Usage, p.UsageInside = value, inside
	}
}

// groq reads x_groq, which may hold the usage, and an error that ended the stream early.
func (p *chunkScan) groq() {
	if !p.s.Enter('{') {
		return
	}
	for p.s.Member() {
		switch string(p.s.Key()) {
		case "usage":
			p.usage(true)
		case "error":
			if value := p.s.Skip(); !emptyValue(value.Of(p.Data)) {
				p.Error = value
			}
		default:
			p.s.Skip()
		}
	}
}

// baseResponse reads base_resp, in which MiniMax reports a failure under status 200.
func (p *chunkScan) baseResponse() {
	start := p.s.Pos()
	if !p.s.Enter('{') {
		return
	}
	failed := false
	for p.s.Member() {
		name := p.s.Key()
		if value := p.s.Skip(); string(name) == "status_code" {
			failed = string(value.Of(p.Data)) != "0"
		}
	}
	if failed && p.Error.IsZero() {
		p.Error = rawjson.Span{Start: start, End: p.s.Pos()}
	}
}

func (p *chunkScan) choices() {
	p.HasChoices, p.Choices = false, p.Choices[:0]
	if !p.s.Enter('[') {
		return
	}
	p.HasChoices = true
	for p.s.Element() {
		start := p.s.Pos()
		p.Choices = append(p.Choices, Choice{})
		p.choice(&p.Choices[len(p.Choices)-1])
		p.Choices[len(p.Choices)-1].Span = rawjson.Span{Start: start, End: p.s.Pos()}
	}
}

func (p *chunkScan) choice(ch *Choice) {
	if !p.s.Enter('{') {
		return
	}
	numbered := false
	defer func() { ch.NoIndex = !numbered }()
	for p.s.Member() {
		switch string(p.s.Key()) {
		case "index":
			raw := p.s.Skip().Of(p.Data)
			ch.Index = smallNumber(raw, 0)
			numbered = smallNumber(raw, -1) >= 0 && raw[0] != '"'
		case "delta":
			p.delta(ch)
		case "message":
			p.Plain = true
			p.delta(ch)
		case "finish_reason":
			ch.Finish = p.s.Skip()
			if failedFinish(ch.Finish.Of(p.Data)) && p.Error.IsZero() {
				p.Error = ch.Finish
			}
		case "logprobs":
			ch.Logprobs = p.s.Skip()
		case "error":
			if value := p.s.Skip(); !emptyValue(value.Of(p.Data)) {
				p.Error = value
			}
		default:
			p.s.Skip()
		}
	}
}

// failedFinish says whether a finish reason means that the upstream failed.
func failedFinish(raw []byte) bool {
	switch string(raw) {
	case `"error"`, `"insufficient_system_resource"`:
		return true
	}
	return false
}

func (p *chunkScan) delta(ch *Choice) {
	if !ch.Delta.IsZero() { // of two, the last counts, as it does for other parsers
		*ch = Choice{Index: ch.Index, Finish: ch.Finish, Logprobs: ch.Logprobs}
	}
	start := p.s.Pos()
	if !p.s.Enter('{') {
		return
	}
	for p.s.Member() {
		switch string(p.s.Key()) {
		case "role":
			ch.Role = p.s.Skip()
		case "content":
			ch.Content = p.s.Skip()
		case "reasoning_content":
			ch.ReasoningContent = p.s.Skip()
		case "reasoning":
			ch.Reasoning = p.s.Skip()
		case "refusal":
			ch.Refusal = p.s.Skip()
		case "tool_calls":
			ch.ToolCalls = p.s.Skip()
		case "function_call":
			ch.FunctionCall = p.s.Skip()
		default:
			ch.Extra = !emptyValue(p.s.Skip().Of(p.Data)) || ch.Extra
		}
	}
	ch.Delta = rawjson.Span{Start: start, End: p.s.Pos()}
}

// smallNumber reads a non-negative integer of a few digits, also one in quotes, or gives other.
func smallNumber(raw []byte, other int) int {
	if len(raw) > 2 && raw[0] == '"' {
		raw = raw[1 : len(raw)-1]
	}
	if len(raw) == 0 || len(raw) > 6 {
		return other
	}
	n := 0
	for _, c := range raw {
		if c < '0' || c > '9' {
			return other
		}
		n = n*10 + int(c-'0')
	}
	return n
}

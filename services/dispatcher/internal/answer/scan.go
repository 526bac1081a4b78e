package answer

import "hydrallm/shared/openai/rawjson"

// chunkScan is a Chunk while it is being read.
type chunkScan struct {
	*Chunk
	s    rawjson.Scanner
	flat bool // has the members of an error that is not wrapped in "error"
}

// skip passes over the value ahead and gives it.
func (p *chunkScan) skip() []byte { return p.s.Skip().Of(p.Data) }

// since gives the value that began at start and has been walked; nil after an error.
func (p *chunkScan) since(start int) []byte {
	if p.s.Failed() {
		return nil
	}
	return p.Data[start:p.s.Pos()]
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
	isError, data := p.Error != nil || p.flat && !p.HasChoices, p.Data
	p.reset(Piece)
	p.Data = data
	if p.s.End() && isError {
		p.Error = data[start:]
	}
}

func (p *chunkScan) object() {
	if !p.s.Enter('{') {
		return
	}
	for p.s.Member() {
		switch string(p.s.Key()) {
		case "id":
			p.ID = p.skip()
		case "object":
			p.flat = rawjson.Is(p.skip(), "error") || p.flat
		case "created":
			p.Created = p.skip()
		case "model":
			p.Model = p.skip()
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
	if value := p.skip(); emptyValue(value) {
		p.NullError = true
	} else {
		p.Error = value
	}
}

func (p *chunkScan) usage(inside bool) {
	isObject := p.s.Kind() == '{'
	value := p.skip()
	if isObject && !emptyValue(value) && (!inside || p.Usage == nil) {
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
			p.failure()
		default:
			p.s.Skip()
		}
	}
}

// failure reads a value that is an error unless it is empty.
func (p *chunkScan) failure() {
	if value := p.skip(); !emptyValue(value) {
		p.Error = value
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
		if value := p.skip(); string(name) == "status_code" {
			failed = string(value) != "0"
		}
	}
	if failed && p.Error == nil {
		p.Error = p.since(start)
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
		ch := &p.Choices[len(p.Choices)-1]
		p.choice(ch)
		ch.Raw = p.since(start)
	}
}

func (p *chunkScan) choice(ch *Choice) {
	if !p.s.Enter('{') {
		ch.NoIndex = false
		return
	}
	ch.NoIndex = true
	for p.s.Member() {
		switch string(p.s.Key()) {
		case "index":
			raw := p.skip()
			ch.Index = smallNumber(raw, 0)
			ch.NoIndex = smallNumber(raw, -1) < 0 || raw[0] == '"'
		case "delta":
			p.delta(ch)
		case "message":
			p.Plain = true
			p.delta(ch)
		case "finish_reason":
			ch.Finish = p.skip()
			if failedFinish(ch.Finish) && p.Error == nil {
				p.Error = ch.Finish
			}
		case "logprobs":
			ch.Logprobs = p.skip()
		case "error":
			p.failure()
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
	if ch.Delta != nil { // of two, the last counts, as it does for other parsers
		*ch = Choice{Index: ch.Index, NoIndex: ch.NoIndex, Finish: ch.Finish, Logprobs: ch.Logprobs}
	}
	start := p.s.Pos()
	if !p.s.Enter('{') {
		return
	}
	for p.s.Member() {
		switch string(p.s.Key()) {
		case "role":
			ch.Role = p.skip()
		case "content":
			ch.Content = p.skip()
		case "reasoning_content":
			ch.ReasoningContent = p.skip()
		case "reasoning":
			ch.Reasoning = p.skip()
		case "refusal":
			ch.Refusal = p.skip()
		case "tool_calls":
			p.toolCalls(ch)
		case "function_call":
			ch.FunctionCall = p.skip()
		default:
			ch.Extra = !emptyValue(p.skip()) || ch.Extra
		}
	}
	ch.Delta = p.since(start)
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

package answer

import (
	"bytes"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// Kind says what an event is.
type Kind uint8

// Kinds.
const (
	Nothing Kind = iota // a sign of life that means nothing to a client
	Comment             // a sign of life in Raw, which a client of the same protocol may see
	Piece               // a piece of the answer
	Problem             // Data is the JSON or text of an error, or may be one
	Done                // the provider says that the answer is complete
)

// Chunk is one event of an answer, or a whole answer. Values are raw JSON; nil when absent. Those of a chunk that was read alias its Data and
// must not be changed in place; a member is changed by putting another value in its place.
type Chunk struct {
	Kind Kind
	// Raw is the event, or the whole answer, as the provider sent it, if a client that speaks the protocol Of may get it so; nil otherwise.
	Raw []byte
	// Of is the protocol of Raw; "" is Chat Completions.
	Of contract.Surface
	// Data is the JSON text that the chunk was read from; nil for one that was made here, whose members are all there is to it.
	Data []byte
	// Edited says that choices are no longer what Data and Raw say.
	Edited bool

	Valid bool // a JSON object; nothing else is set if not, except Error for an array of errors
	Plain bool // the choices hold messages: a whole answer, not a piece of a stream

	// Error is where an error is reported, in any of the forms that upstreams use.
	Error []byte
	// NullError says that there is a member "error" without meaning (null, false or empty). Some clients take it for an error.
	NullError bool

	HasChoices bool // the member "choices" is an array
	Choices    []Choice

	// Usage is the object of the token counts, from the top level or else from x_groq.
	Usage []byte
	// UsageInside says that Usage was not at the top level.
	UsageInside bool

	ID, Created, Model []byte

	calls []Call // room for those of all choices
}

// Choice is one element of the choices of a Chunk.
type Choice struct {
	Raw    []byte // the whole element as it came; nil for one that was made here
	Edited bool   // it is no longer what Raw says

	Index int // 0 when absent or no number
	// NoIndex says that the member "index" is missing, or no number that clients can use as an index.
	NoIndex bool
	// Delta is the object "delta" or "message" as it came. Members that have no field here are read from it.
	Delta []byte

	Role, Content, Refusal, FunctionCall []byte
	ReasoningContent, Reasoning          []byte // two names of the same thing
	ToolCalls                            []byte // as they came; nil when Calls are no longer what it says
	Calls                                []Call
	Finish                               []byte // finish_reason
	Logprobs                             []byte

	// Extra says that the delta has other members that are not null (annotations, audio, reasoning_details, ...).
	Extra bool
}

// Parse reads data, which the Chunk aliases until the next Parse. Kind is Piece and Raw is nil afterwards.
func (c *Chunk) Parse(data []byte) {
	c.reset(Piece)
	c.Data = data
	p := chunkScan{Chunk: c, s: rawjson.Scan(data)}
	if p.s.Kind() == '[' {
		p.array()
		return
	}
	start := p.s.Pos()
	p.object()
	if c.Valid = p.s.End() && data[start] == '{'; !c.Valid {
		c.reset(Piece)
		c.Data = data
		return
	}
	if p.flat && !c.HasChoices && c.Error == nil {
		c.Error = data[start:]
	}
}

// Reset makes an empty chunk of the kind, as translators fill it. It keeps the room of the old one.
func (c *Chunk) Reset(kind Kind) {
	c.reset(kind)
	c.Valid, c.HasChoices = true, true
}

func (c *Chunk) reset(kind Kind) {
	*c = Chunk{Kind: kind, Choices: c.Choices[:0], calls: c.calls[:0]}
}

// Choose adds a choice, with an empty delta, to a chunk that is made.
func (c *Chunk) Choose(index int) *Choice {
	c.Choices = append(c.Choices, Choice{Index: index})
	return &c.Choices[len(c.Choices)-1]
}

// Finished says whether the choice ends with this chunk.
func (ch *Choice) Finished() bool { return !emptyValue(ch.Finish) }

// HasOutput says whether the choice brings anything that a client shows or runs: text, reasoning, a refusal or a call.
func (ch *Choice) HasOutput() bool {
	return ch.HasAnswer() || !emptyValue(ch.ReasoningContent) || !emptyValue(ch.Reasoning)
}

// HasAnswer says whether the choice brings output that is more than reasoning.
func (ch *Choice) HasAnswer() bool {
	return !emptyValue(ch.Content) || len(ch.Calls) > 0 || !emptyValue(ch.ToolCalls) || !emptyValue(ch.FunctionCall) || !emptyValue(ch.Refusal)
}

// Decisive says whether the chunk settles that the upstream works: it has output or a finish reason. In a stream, a stop before any output
// settles nothing.
func (c *Chunk) Decisive() bool {
	for i := range c.Choices {
		if ch := &c.Choices[i]; ch.HasOutput() || ch.Finished() {
			return true
		}
	}
	return false
}

// Answers says whether the chunk is a whole answer: it has a choice with a message. Anything else is of no use to a client that waits for one.
func (c *Chunk) Answers() bool {
	for i := range c.Choices {
		if ch := &c.Choices[i]; ch.Delta != nil || ch.Raw == nil {
			return true
		}
	}
	return false
}

// UsageOnly says whether the chunk does nothing but report usage.
func (c *Chunk) UsageOnly() bool { return len(c.Choices) == 0 && c.Usage != nil }

// Size is about how many bytes of an answer the chunk brings.
func (c *Chunk) Size() int {
	if c.Data != nil {
		return len(c.Data)
	}
	n := 0
	for i := range c.Choices {
		ch := &c.Choices[i]
		n += len(ch.Content) + len(ch.ReasoningContent) + len(ch.Refusal) + len(ch.Delta)
		for k := range ch.Calls {
			n += len(ch.Calls[k].Args)
		}
	}
	return n
}

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

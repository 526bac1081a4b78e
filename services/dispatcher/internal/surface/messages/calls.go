package messages

import (
	"bytes"
	"slices"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
)

// call is a call of a tool. Providers may send the pieces of several calls in turns, but here a call is written whole before the next one begins.
type call struct {
	start   []byte // the block it begins with
	waiting []byte // arguments that are not written yet, the inner part of a string
	depth   argumentDepth
	done    bool // it was written to its end
}

// call appends a piece of a call, if its turn has come.
func (a *Answer) call(dst []byte, c *answer.Call) []byte {
	if c.Index < 0 || c.Index > len(a.calls) {
		return dst
	}
	if c.Index == len(a.calls) {
		block := rawjson.Object(nil).Text("type", "tool_use").Set("id", c.ID).Set("name", c.Name).Set("input", []byte("{}")).End()
		a.calls = append(a.calls, &call{start: block})
	}
	of := a.calls[c.Index]
	args := c.ArgText()
	of.depth.feed(args)
	of.waiting = append(of.waiting, args...)
	if dst = a.advance(dst, false); !a.calling() {
		dst = a.saidLater(dst)
	}
	return dst
}

// calling says whether more of a call is to come.
func (a *Answer) calling() bool {
	return slices.ContainsFunc(a.calls, func(c *call) bool { return !c.done && !c.depth.complete() })
}

// advance writes what there is of the first call that is not done, and of those behind it while that one is complete or last says that nothing more comes.
func (a *Answer) advance(dst []byte, last bool) []byte {
	for i, c := range a.calls {
		if c.done {
			continue
		}
		if c.start != nil {
			dst = a.closeBlock(dst)
			a.open = tool
			dst = a.startBlock(dst, string(c.start))
			c.start = nil
		}
		if len(c.waiting) > 0 {
			dst = a.delta(dst, `"input_json_delta","partial_json":`, answer.Quoted(c.waiting))
			c.waiting = c.waiting[:0]
		}
		if i+1 == len(a.calls) && !last || !last && !c.depth.complete() {
			return dst
		}
		c.done = true
		dst = a.closeBlock(dst)
	}
	return dst
}

// flush writes all that waits of calls.
func (a *Answer) flush(dst []byte) []byte { return a.advance(dst, true) }

// argumentDepth follows the text of a JSON object that comes as pieces of a JSON string, just far enough to know where it ends.
type argumentDepth struct {
	depth             int
	begun             bool
	inString, escaped bool
}

func (d *argumentDepth) feed(inner []byte) {
	for len(inner) > 0 {
		unit, size := rawjson.Unit(inner)
		inner = inner[size:]
		switch {
		case d.escaped:
			d.escaped = false
		case d.inString:
			d.escaped, d.inString = unit == '\\', unit != '"'
		case unit == '"':
			d.inString = true
		case unit == '{' || unit == '[':
			d.depth, d.begun = d.depth+1, true
		case unit == '}' || unit == ']':
			d.depth--
		}
	}
}

func (d *argumentDepth) complete() bool { return d.begun && d.depth <= 0 }

// Whole gives a whole message.
func (a *Answer) Whole(c *answer.Chunk) []byte {
	a.head.Learn(c)
	var ch answer.Choice
	if len(c.Choices) > 0 {
		ch = c.Choices[0]
	}
	a.finish, a.stop = ch.Finish, stopSequence(&ch)
	out := a.appendHead(nil)
	out = append(append(out, `,"content":`...), rawjson.Array(blocksOf(&ch))...)
	reason, sequence := a.stopReason(len(ch.Calls) > 0)
	out = append(append(out, `,"stop_reason":`...), reason...)
	out = append(append(out, `,"stop_sequence":`...), sequence...)
	out = append(append(out, `,"usage":`...), a.usage(c)...)
	if a.told.Session != "" {
		out = rawjson.AppendString(append(out, `,"session_id":`...), a.told.Session)
	}
	return append(out, '}')
}

// blocksOf gives the content of a whole message.
func blocksOf(ch *answer.Choice) (blocks [][]byte) {
	block := func(kind string) rawjson.Object { return rawjson.Object(nil).Text("type", kind) }
	thought := ch.ReasoningContent
	if len(answer.Inner(thought)) == 0 {
		thought = ch.Reasoning
	}
	details := signedDetails(ch)
	for _, entry := range details {
		if data := entry["data"]; data != nil {
			blocks = append(blocks, block("redacted_thinking").Set("data", data).End())
			continue
		}
		said := entry["text"]
		if !answer.IsText(said) {
			said = []byte(`""`)
		}
		blocks = append(blocks, block("thinking").Set("thinking", said).Set("signature", entry["signature"]).End())
	}
	if len(details) == 0 && len(answer.Inner(thought)) > 0 {
		blocks = append(blocks, block("thinking").Set("thinking", thought).Set("signature", []byte(`""`)).End())
	}
	for _, said := range [][]byte{ch.Content, ch.Refusal} {
		if len(answer.Inner(said)) > 0 {
			blocks = append(blocks, block("text").Set("text", said).End())
		}
	}
	for i := range ch.Calls {
		c := &ch.Calls[i]
		blocks = append(blocks, block("tool_use").Set("id", c.ID).Set("name", c.Name).Set("input", input(c)).End())
	}
	return blocks
}

// input gives the arguments of a call as an object. A text that is none, say because it was cut off, is kept for the client to see.
func input(c *answer.Call) []byte {
	args := bytes.TrimSpace([]byte(rawjson.Text(answer.Quoted(c.ArgText()))))
	switch {
	case len(args) == 0:
		return []byte("{}")
	case args[0] == '{' && rawjson.Valid(args):
		return args
	}
	return rawjson.Object(nil).Text("arguments", string(args)).End()
}

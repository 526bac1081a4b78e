package messages

import (
	"bytes"
	"crypto/rand"
	"strconv"
	"strings"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/messages"
)

// Answer writes one answer as the events of Messages: a message that begins, blocks that never overlap, and the end of the message with the usage.
type Answer struct {
	request *Request
	told    surface.Disclosure

	head   answer.Head
	begun  bool // message_start was written
	blocks int  // begun so far
	open   kind // of the block that is open
	signed bool // the thinking that is open has its signature
	calls  []*call
	later  []said // behind a call that is not whole yet
	finish []byte // finish reason, a raw string
	stop   []byte // the stop sequence that the provider names, a raw string
}

// kind is that of a block.
type kind uint8

const (
	none kind = iota
	text
	thinking
	tool
)

// said is a piece of text or thinking, the inner part of a string.
type said struct {
	kind  kind
	inner []byte
}

// ContentType is that of an event stream.
func (*Answer) ContentType() string { return "text/event-stream; charset=utf-8" }

// Append appends the events of a chunk.
func (a *Answer) Append(dst []byte, c *answer.Chunk) []byte {
	if c.Kind == answer.Comment {
		if !a.begun { // nothing but comments may come before a message begins
			return append(dst, ": ping\n\n"...)
		}
		return append(dst, ping...)
	}
	a.head.Learn(c)
	for i := range c.Choices {
		if c.Choices[i].Index == 0 {
			dst = a.choice(dst, &c.Choices[i])
		}
	}
	return dst
}

const ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n"

func (a *Answer) choice(dst []byte, ch *answer.Choice) []byte {
	dst = a.begin(dst)
	thought := ch.ReasoningContent
	if len(answer.Inner(thought)) == 0 {
		thought = ch.Reasoning
	}
	dst = a.say(dst, thinking, thought)
	if ch.Extra {
		dst = a.details(dst, ch)
	}
	dst = a.say(a.say(dst, text, ch.Content), text, ch.Refusal)
	for i := range ch.Calls {
		dst = a.call(dst, &ch.Calls[i])
	}
	if ch.Finished() {
		a.finish, a.stop = bytes.Clone(ch.Finish), stopSequence(ch)
	}
	return dst
}

// say appends a piece of text or thinking. Some servers send one in the middle of a call: it waits then.
func (a *Answer) say(dst []byte, k kind, raw []byte) []byte {
	inner := answer.Inner(raw)
	switch {
	case len(inner) == 0:
		return dst
	case a.calling():
		a.later = append(a.later, said{k, bytes.Clone(inner)})
		return dst
	case k == thinking:
		return a.delta(a.openBlock(dst, thinking), `"thinking_delta","thinking":`, raw)
	}
	return a.delta(a.openBlock(dst, text), `"text_delta","text":`, raw)
}

// saidLater appends what waited for the end of a call.
func (a *Answer) saidLater(dst []byte) []byte {
	waited := a.later
	a.later = nil
	for _, s := range waited {
		dst = a.say(dst, s.kind, answer.Quoted(s.inner))
	}
	return dst
}

// stopSequence gives the text that ended an answer, which some servers name beside the finish reason.
func stopSequence(ch *answer.Choice) []byte {
	if ch.Raw == nil || !rawjson.Is(ch.Finish, "stop") {
		return nil
	}
	if named := rawjson.Get(ch.Raw, "stop_reason"); len(answer.Inner(named)) > 0 {
		return bytes.Clone(named)
	}
	return nil
}

// begin begins the message.
func (a *Answer) begin(dst []byte) []byte {
	if a.begun {
		return dst
	}
	a.begun = true
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = a.appendHead(dst)
	dst = append(dst, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":`...)
	dst = strconv.AppendInt(dst, a.request.tokens(), 10) // what it really was is known at the end
	return append(dst, `,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}`+"\n\n"...)
}

// appendHead appends the first members of a message.
func (a *Answer) appendHead(dst []byte) []byte {
	if a.head.ID == nil {
		a.head.ID = rawjson.AppendString(nil, "msg_"+strings.ToLower(rand.Text()))
	}
	a.head.Complete(a.told.Model)
	if asked := rawjson.Get(a.request.body, "model"); string(a.head.Model) == `""` && len(asked) > 0 && asked[0] == '"' {
		a.head.Model = asked
	}
	dst = append(append(dst, `{"id":`...), a.head.ID...)
	return append(append(dst, `,"type":"message","role":"assistant","model":`...), a.head.Model...)
}

// openBlock goes on with a block of text or thinking, or begins one.
func (a *Answer) openBlock(dst []byte, k kind) []byte {
	if a.open == k && (k != thinking || !a.signed) {
		return dst
	}
	dst = a.closeBlock(a.flush(dst))
	switch a.open = k; k {
	case thinking:
		return a.startBlock(dst, `{"type":"thinking","thinking":"","signature":""}`)
	case text, tool, none:
	}
	return a.startBlock(dst, `{"type":"text","text":""}`)
}

func (a *Answer) startBlock(dst []byte, block string) []byte {
	dst = append(dst, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":"...)
	dst = strconv.AppendInt(dst, int64(a.blocks), 10)
	a.blocks++
	return append(append(append(dst, `,"content_block":`...), block...), "}\n\n"...)
}

// delta appends a delta of the open block: its type and the name of its member, and the raw value of that.
func (a *Answer) delta(dst []byte, what string, value []byte) []byte {
	dst = append(dst, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	dst = strconv.AppendInt(dst, int64(a.blocks-1), 10)
	dst = append(append(dst, `,"delta":{"type":`...), what...)
	return append(append(dst, value...), "}}\n\n"...)
}

func (a *Answer) closeBlock(dst []byte) []byte {
	if a.open == none {
		return dst
	}
	a.open, a.signed = none, false
	dst = append(dst, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":"...)
	return append(strconv.AppendInt(dst, int64(a.blocks-1), 10), "}\n\n"...)
}

// details appends what Anthropic's thinking has beside its text: a signature behind it, or thinking that nobody can read.
func (a *Answer) details(dst []byte, ch *answer.Choice) []byte {
	for _, entry := range signedDetails(ch) {
		if data := entry["data"]; data != nil {
			dst = a.closeBlock(a.flush(dst))
			dst = a.startBlock(dst, string(rawjson.Object(nil).Text("type", "redacted_thinking").Set("data", data).End()))
			a.open = text
			dst = a.closeBlock(dst)
			continue
		}
		if a.open != thinking || a.signed {
			dst = a.openBlock(dst, thinking)
		}
		dst, a.signed = a.delta(dst, `"signature_delta","signature":`, entry["signature"]), true
	}
	return dst
}

// signedDetails gives the entries of reasoning_details that Anthropic will know again.
func signedDetails(ch *answer.Choice) (list []map[string][]byte) {
	all := rawjson.Get(ch.Delta, "reasoning_details")
	for span := range rawjson.Elements(all) {
		entry := rawjson.Given(span.Of(all))
		if rawjson.Is(entry["format"], messages.ThinkingFormat) && (len(answer.Inner(entry["signature"])) > 0 || len(answer.Inner(entry["data"])) > 0) {
			list = append(list, entry)
		}
	}
	return list
}

// End appends the end of the message.
func (a *Answer) End(dst []byte, end stream.End) []byte {
	dst = a.closeBlock(a.saidLater(a.flush(a.begin(dst))))
	reason, sequence := a.stopReason(len(a.calls) > 0)
	dst = append(append(dst, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"...), reason...)
	dst = append(append(dst, `,"stop_sequence":`...), sequence...)
	dst = append(append(dst, `},"usage":`...), a.usage(end.Usage)...)
	return append(dst, "}\n\n"+stopEvent...)
}

// stopReason gives the stop_reason for the finish reason, and the stop_sequence.
func (a *Answer) stopReason(calls bool) (reason, sequence string) {
	switch string(a.finish) {
	case `"length"`:
		return `"max_tokens"`, "null"
	case `"content_filter"`:
		return `"refusal"`, "null"
	}
	switch {
	case calls, string(a.finish) == `"tool_calls"`:
		return `"tool_use"`, "null"
	case a.stop != nil:
		return `"stop_sequence"`, string(a.stop)
	}
	return `"end_turn"`, "null"
}

// usage gives the counts of a chunk, which may be nil: Anthropic counts what was read from the cache, or written to it, apart.
func (a *Answer) usage(c *answer.Chunk) []byte {
	var raw []byte
	if c != nil {
		raw = c.Usage
	}
	details := rawjson.Get(raw, "prompt_tokens_details")
	cached, written := number(rawjson.Get(details, "cached_tokens")), number(rawjson.Get(details, "cache_write_tokens"))
	input := max(number(rawjson.Get(raw, "prompt_tokens"))-cached-written, 0)
	out := rawjson.Object(nil).Set("input_tokens", strconv.AppendInt(nil, input, 10)).
		Set("cache_creation_input_tokens", strconv.AppendInt(nil, written, 10)).
		Set("cache_read_input_tokens", strconv.AppendInt(nil, cached, 10)).
		Set("output_tokens", strconv.AppendInt(nil, number(rawjson.Get(raw, "completion_tokens")), 10))
	for _, m := range a.told.Usage {
		out = out.Set(m.Name, m.Value)
	}
	return out.End()
}

func number(raw []byte) int64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(f > 0) {
		return 0
	}
	return int64(min(f, 1<<53))
}

// Fail appends the error, after which nothing comes.
func (*Answer) Fail(dst []byte, f *fault.Fault) []byte { return messages.Errors{}.AppendEvent(dst, f) }

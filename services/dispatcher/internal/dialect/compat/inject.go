package compat

import (
	"bytes"
	"strings"

	"hydrallm/shared/openai/rawjson"
)

// unsigned is what Gemini takes in place of a signature for a call that it did not make itself. The answer suffers, so it is a last resort.
const unsigned = "skip_thought_signature_validator"

// Inject puts missing thought signatures into the history of a request to Gemini, on the tool calls that have one in the memory.
//
// Gemini 3 and later refuse a request when, after the last message of the user, the first call of a step (a message of the assistant) has
// none: calls made by another model, or so long ago that they are forgotten. These get the documented bypass, and only these: further calls
// of the same step have no signature by nature, earlier turns are not checked, and older models don't ask. The body is returned as it is when
// nothing is missing.
func (s *Signatures) Inject(body []byte) []byte {
	if !bytes.Contains(body, []byte("tool_calls")) {
		return body
	}
	h := history{memory: s, body: body, s: rawjson.Scan(body)}
	h.scan()
	if !h.s.End() {
		return body
	}
	if checksSignatures(h.model) {
		for _, c := range h.unsigned {
			c.sign(&h.edits, body, unsigned)
		}
	}
	return h.edits.apply(body)
}

// checksSignatures says whether a model refuses calls without a signature. Names without a number, such as gemini-flash-latest, stand for
// current models.
func checksSignatures(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	return strings.HasPrefix(name, "gemini-") && !strings.HasPrefix(name, "gemini-1") && !strings.HasPrefix(name, "gemini-2")
}

// history is a request while its signatures are looked at.
type history struct {
	memory   *Signatures
	body     []byte
	s        rawjson.Scanner
	edits    edits
	model    string
	unsigned []place // first calls without a signature, since the last message of the user
}

// place is where the signature of a call goes.
type place struct {
	extra   rawjson.Span // extra_content, zero when absent
	closing int          // offset of the closing brace of the call
	comma   bool
}

func (h *history) scan() {
	if !h.s.Enter('{') {
		return
	}
	for h.s.Member() {
		switch string(h.s.Key()) {
		case "model":
			h.model = rawjson.Text(h.s.Skip().Of(h.body))
		case "messages":
			if h.s.Enter('[') {
				for h.s.Element() {
					h.message()
				}
			}
		default:
			h.s.Skip()
		}
	}
}

func (h *history) message() {
	if !h.s.Enter('{') {
		return
	}
	for h.s.Member() {
		switch string(h.s.Key()) {
		case "role":
			if rawjson.Is(h.s.Skip().Of(h.body), "user") {
				h.unsigned = h.unsigned[:0]
			}
		case "tool_calls":
			if h.s.Enter('[') {
				for first := true; h.s.Element(); first = false {
					h.call(first)
				}
			}
		default:
			h.s.Skip()
		}
	}
}

// call reads a tool call and signs it if its signature is known.
func (h *history) call(first bool) {
	if !h.s.Enter('{') {
		return
	}
	var p place
	var id []byte
	for h.s.Member() {
		p.comma = true
		switch string(h.s.Key()) {
		case "id":
			id = h.s.Skip().Of(h.body)
		case "extra_content":
			p.extra = h.s.Skip()
		default:
			h.s.Skip()
		}
	}
	if h.s.Failed() || len(rawSignature(p.extra.Of(h.body))) > len(`""`) {
		return
	}
	p.closing = h.s.Pos() - 1
	if known := h.memory.Signature(rawjson.Text(id)); known != "" {
		p.sign(&h.edits, h.body, known)
	} else if first {
		h.unsigned = append(h.unsigned, p)
	}
}

// rawSignature gives the signature in an extra_content as it is written, or nil.
func rawSignature(extra []byte) []byte {
	return rawjson.Get(rawjson.Get(extra, "google"), "thought_signature")
}

// sign adds a signature to a call. What else is in its extra_content stays.
func (p place) sign(e *edits, body []byte, signature string) {
	value := rawjson.AppendString(nil, signature)
	if p.extra.IsZero() || body[p.extra.Start] != '{' {
		value = append(append([]byte(`{"google":{"thought_signature":`), value...), `}}`...)
	} else {
		extra := p.extra.Of(body)
		if google := rawjson.Get(extra, "google"); len(google) > 0 && google[0] == '{' {
			value = rawjson.AppendSet(nil, google, "thought_signature", value)
		} else {
			value = append(append([]byte(`{"thought_signature":`), value...), '}')
		}
		value = rawjson.AppendSet(nil, extra, "google", value)
	}
	slot{value: p.extra, closing: p.closing, comma: p.comma}.put(e, "extra_content", string(value))
}

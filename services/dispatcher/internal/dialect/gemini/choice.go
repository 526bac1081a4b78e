package gemini

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
)

// choice is the state of one candidate on its way to a choice.
type choice struct {
	index         int
	numbered      bool   // calls and images have an index, as deltas need it
	calls, images int    // that came so far
	output        bool   // an answer came: a text, a call or an image
	finish        string // "" while the choice is open
	text          []byte // what the citations point at, up to maxKept
	grounding     []byte // raw groundingMetadata, the last that came
	cited         []byte // the citations that the client knows
}

// maxKept bounds what a choice keeps of its text, and of the metadata of a search.
const maxKept = 1 << 20

// message is what some parts of a candidate bring to the client. Texts are inner parts of JSON strings, images elements of an array.
type message struct {
	reasoning, content, images []byte
	calls                      []answer.Call
}

// some says whether the parts meant anything.
func (m *message) some() bool {
	return len(m.reasoning) > 0 || len(m.content) > 0 || len(m.images) > 0 || len(m.calls) > 0
}

// read takes the next parts of the candidate. Those that mean nothing to a client are left out, as are the signatures of texts, which no
// client could give back.
func (c *choice) read(parts []byte) (m message) {
	for span := range rawjson.Elements(parts) {
		c.readPart(&m, span.Of(parts))
	}
	c.output = c.output || len(m.content) > 0 || len(m.calls) > 0 || len(m.images) > 0
	return m
}

func (c *choice) readPart(msg *message, raw []byte) {
	var text, call, image, signature []byte
	thought := false
	for m := range rawjson.Members(raw) {
		v := m.Value.Of(raw)
		switch string(m.Name()) {
		case "text":
			text = v
		case "thought":
			thought = string(v) == "true"
		case "functionCall":
			call = v
		case "inlineData":
			image = imageOf(v)
		case "thoughtSignature":
			signature = v
		}
	}
	switch {
	case call != nil:
		if tool, ok := toolCall(call, signature); ok {
			tool.Index, tool.PlainIndex = c.calls, true
			tool.Raw = c.appendElement(nil, tool.Raw, &c.calls)
			msg.calls = append(msg.calls, tool)
		}
	case thought && isText(text):
		msg.reasoning = append(msg.reasoning, text[1:len(text)-1]...)
	case thought: // a sketch that the model made for itself
	case image != nil:
		msg.images = c.appendElement(msg.images, image, &c.images)
	case isText(text):
		msg.content = append(msg.content, text[1:len(text)-1]...)
		if len(c.text)+len(text) <= maxKept {
			c.text = rawjson.AppendText(c.text, text[1:len(text)-1])
		}
	}
}

// appendElement appends an object to the elements of an array and counts it.
func (c *choice) appendElement(dst, object []byte, count *int) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	if c.numbered {
		dst = strconv.AppendInt(append(dst, `{"index":`...), int64(*count), 10)
		object[0] = ','
	}
	*count++
	return append(dst, object...)
}

// toolCall makes a tool call of a functionCall; false if that names no function. The signature goes where clients keep it for Google's own
// compatible endpoint.
func toolCall(raw, signature []byte) (answer.Call, bool) {
	var id, name []byte
	args := []byte("{}")
	for m := range rawjson.Members(raw) {
		v := m.Value.Of(raw)
		switch string(m.Name()) {
		case "id":
			id = v
		case "name":
			name = v
		case "args":
			var compact bytes.Buffer
			if v[0] == '{' && json.Compact(&compact, v) == nil {
				args = compact.Bytes()
			}
		}
	}
	if !isText(name) {
		return answer.Call{}, false
	}
	if !isText(id) {
		id = rawjson.AppendString(nil, "call_"+strings.ToLower(rand.Text()))
	}
	name = rawjson.AppendString(nil, ClientName(rawjson.Text(name)))
	c := answer.Call{ID: id, Type: functionType, Name: name, Args: rawjson.AppendString(nil, args), Extra: isText(signature)}
	c.Tool = append(append([]byte(`{"name":`), name...), `,"arguments":`...)
	c.Tool = append(append(c.Tool, c.Args...), '}')
	c.Raw = append(append([]byte(`{"id":`), id...), `,"type":"function"`...)
	if c.Extra {
		c.Raw = append(append(c.Raw, `,"extra_content":{"google":{"thought_signature":`...), signature...)
		c.Raw = append(c.Raw, "}}"...)
	}
	c.Raw = append(append(append(c.Raw, `,"function":`...), c.Tool...), '}')
	return c, true
}

var functionType = []byte(`"function"`)

// imageOf makes an entry of images, as other gateways have it too, of the inlineData of an image; nil for other media.
func imageOf(raw []byte) []byte {
	mime, data := rawjson.Get(raw, "mimeType"), rawjson.Get(raw, "data")
	if !strings.HasPrefix(rawjson.Text(mime), "image/") || !isText(data) {
		return nil
	}
	image := append([]byte(`{"type":"image_url","image_url":{"url":"data:`), mime[1:len(mime)-1]...)
	return append(append(append(image, ";base64,"...), data[1:]...), "}}"...)
}

// failed says whether a candidate ended in a way that is worth another attempt, if nothing was answered.
func failed(finish string) bool {
	switch finish {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE":
		return true
	}
	return false
}

// close notes the finish reason. Numbers are those of the reasons in Google's protocol buffers.
func (c *choice) close(finish string) {
	switch {
	case finish == "MAX_TOKENS", finish == "2":
		c.finish = "length"
	case filtered(finish) || !c.output && finish != "STOP" && finish != "1" && !failed(finish):
		c.finish = finishFilter
	case c.calls > 0:
		c.finish = "tool_calls"
	default:
		c.finish = "stop"
	}
}

const finishFilter = "content_filter"

func filtered(finish string) bool {
	switch finish {
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "3", "4":
		return true
	}
	return strings.HasPrefix(finish, "IMAGE_")
}

// ground keeps the metadata of a search. They come again with more in them.
func (c *choice) ground(raw []byte) {
	if len(raw) > 0 && raw[0] == '{' && len(raw) <= maxKept {
		c.grounding = append(c.grounding[:0], raw...)
	}
}

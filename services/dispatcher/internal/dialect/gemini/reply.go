package gemini

import "hydrallm/shared/openai/rawjson"

// reply is a GenerateContentResponse: a whole answer, or an event of a stream. Values are raw and alias the text that was read; nil when
// absent.
type reply struct {
	candidates []candidate
	blocked    bool // the prompt was, so there are no candidates
	usage      []byte
	model, id  []byte
}

type candidate struct {
	index     int
	parts     []byte
	finish    string // finishReason; "" while there is more to come
	grounding []byte
}

// maxCandidates bounds the indexes of candidates. Gemini gives at most eight.
const maxCandidates = 16

// readReply answers false for a text that is no answer, such as an error.
func readReply(data []byte) (r reply, ok bool) {
	if !rawjson.Valid(data) {
		return reply{}, false
	}
	for m := range rawjson.Members(data) {
		value := m.Value.Of(data)
		switch string(m.Name()) {
		case "error":
			return reply{}, false
		case "candidates":
			ok = ok || value[0] == '['
			r.readCandidates(value)
		case "promptFeedback":
			reason := rawjson.Get(value, "blockReason")
			r.blocked = isText(reason) && !rawjson.Is(reason, "BLOCK_REASON_UNSPECIFIED")
			ok = ok || r.blocked
		case "usageMetadata":
			r.usage = value
			ok = true
		case "modelVersion":
			r.model = value
		case "responseId":
			r.id = value
		}
	}
	return r, ok
}

func (r *reply) readCandidates(array []byte) {
	position := 0
	for span := range rawjson.Elements(array) {
		raw := span.Of(array)
		c := candidate{index: position}
		for m := range rawjson.Members(raw) {
			value := m.Value.Of(raw)
			switch string(m.Name()) {
			case "index":
				c.index = int(number(value))
			case "content":
				c.parts = rawjson.Get(value, "parts")
			case "finishReason":
				c.finish = finishName(value)
			case "groundingMetadata":
				c.grounding = value
			}
		}
		if c.index < maxCandidates {
			r.candidates = append(r.candidates, c)
		}
		position++
	}
}

// finishName gives the name of a reason, or its number in digits.
func finishName(raw []byte) string {
	name := string(raw)
	if isText(raw) {
		name = rawjson.Text(raw)
	}
	switch name {
	case "null", "0", "FINISH_REASON_UNSPECIFIED":
		return ""
	}
	return name
}

// isText says whether a raw value is a string that is not empty.
func isText(raw []byte) bool { return len(raw) > len(`""`) && raw[0] == '"' }

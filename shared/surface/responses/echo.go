package responses

import (
	"strconv"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// echoed are members of a response that say what the client asked for, with what they are when it did not.
var echoed = []struct{ name, absent string }{
	{"previous_response_id", "null"},
	{"instructions", "null"},
	{"max_output_tokens", "null"},
	{"max_tool_calls", "null"},
	{"metadata", "{}"},
	{"parallel_tool_calls", "true"},
	{"prompt_cache_key", "null"},
	{"reasoning", `{"effort":null,"summary":null}`},
	{"safety_identifier", "null"},
	{"temperature", "null"},
	{"text", `{"format":{"type":"text"}}`},
	{"tool_choice", `"auto"`},
	{"tools", "[]"},
	{"top_logprobs", "null"},
	{"top_p", "null"},
	{"truncation", `"disabled"`},
	{"user", "null"},
}

// AppendEcho appends the members of a response that say what the client asked for, each with a comma before it.
func (r *Request) AppendEcho(dst []byte) []byte {
	for _, m := range echoed {
		dst = append(append(append(dst, `,"`...), m.name...), `":`...)
		if value := r.Value(m.name); value != nil {
			dst = append(dst, value...)
		} else {
			dst = append(dst, m.absent...)
		}
	}
	return dst
}

// maxQueued bounds a queued response, which travels as one message. Above it, it does not repeat what the client asked for.
const maxQueued = 256 << 10

// Queued gives the response to a request in the background as it is before anything has come. The error is an *openai.RequestError.
func Queued(envelope *contract.Request, body []byte) ([]byte, error) {
	r, err := Read(body)
	if err != nil {
		return nil, err
	}
	queued := r.queued(envelope)
	if len(queued) > maxQueued {
		queued = (&Request{Model: r.Model}).queued(envelope)
	}
	return queued, nil
}

func (r *Request) queued(envelope *contract.Request) []byte {
	dst := append(append(make([]byte, 0, 1024), `{"id":"`...), contract.ResponseID(envelope.ID)...)
	dst = strconv.AppendInt(append(dst, `","object":"response","created_at":`...), envelope.ReceivedAt.Unix(), 10)
	dst = append(dst, `,"status":"queued","completed_at":null,"background":true,"error":null,"incomplete_details":null,"model":`...)
	dst = append(rawjson.AppendString(dst, r.Model), `,"output":[]`...)
	dst = strconv.AppendBool(append(r.AppendEcho(dst), `,"store":`...), envelope.Store)
	return append(dst, `,"usage":null}`...)
}

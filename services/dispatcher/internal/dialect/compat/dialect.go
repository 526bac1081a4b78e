package compat

import (
	"context"

	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
)

// google is the vendor whose tool calls have signatures.
const google = "gemini"

// Dialect is a dialect of OpenAI's protocol as one vendor speaks it. Embeddings go through unchanged.
type Dialect struct {
	dialect.Dialect

	Vendor     string
	AsIs       bool                   // the request is the operator's affair: only what the model is sure to refuse is changed, for Gemini (C-03)
	Signatures *Signatures            // for Gemini, shared by all its models; nil: signatures are left to the client
	Keep       func(name string) bool // says which members of the request the operator has set, see RequestKeeping; nil: none
}

var _ dialect.Dialect = Dialect{}

// Chat adapts the call to the vendor. The error is an *openai.RequestError when the body is not JSON, or has a part that the vendor does not take.
func (d Dialect) Chat(ctx context.Context, call upstream.Call) (*dialect.Response, error) {
	if !d.AsIs {
		body, err := RequestKeeping(d.Vendor, call.Body, d.Keep)
		if err != nil {
			return nil, err
		}
		call.Body = body
	}
	if d.Vendor != google {
		return d.Dialect.Chat(ctx, call)
	}
	body, renamed := fitGoogle(call.Body, d.Keep)
	if call.Body = body; d.Signatures != nil {
		call.Body = d.Signatures.Inject(call.Body)
	}
	resp, err := d.Dialect.Chat(ctx, call)
	if err != nil {
		return nil, err
	}
	if renamed {
		restoreNames(resp)
	}
	if d.Signatures != nil {
		d.Signatures.Watch(resp)
	}
	return resp, nil
}

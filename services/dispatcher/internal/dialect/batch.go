package dialect

import (
	"bytes"
	"context"
	"io"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/embed"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai/rawjson"
)

// Batched is a dialect whose provider takes fewer inputs in one request to Embeddings than OpenAI does. A request with more of them goes out in
// several calls, one after the other, and their answers become one. The first that is no answer ends it, and is what comes back.
type Batched struct {
	Dialect

	Most int // inputs of one call
}

var _ Dialect = Batched{}

// maxVectors bounds the answers of all calls together.
const maxVectors = 64 << 20

// Embed makes the call, or the calls. Together they have the time of one.
func (d Batched) Embed(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	calls := d.split(call)
	if len(calls) == 1 {
		return d.Dialect.Embed(ctx, call)
	}
	limited, cancel := context.WithTimeoutCause(ctx, call.RequestTimeout, classify.ErrTotalTimeout)
	defer cancel()
	var last *upstream.Response
	var answers [][]byte
	var inputs []int
	left := int64(maxVectors)
	for _, part := range calls {
		resp, err := d.Dialect.Embed(limited, part.call)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, left))
		resp.Close()
		if err != nil {
			return nil, err
		}
		// What is no answer is for the caller to judge, who reads this one alone.
		if _, err = embed.Join([][]byte{body}, []int{part.inputs}); resp.Status/100 != 2 || err != nil {
			return readAlready(ctx, resp, body), nil
		}
		left -= int64(len(body))
		last, answers, inputs = resp, append(answers, body), append(inputs, part.inputs)
	}
	body, err := embed.Join(answers, inputs)
	if err != nil {
		return nil, err
	}
	return readAlready(ctx, last, body), nil
}

// readAlready is a response whose body was read, or replaced.
func readAlready(ctx context.Context, resp *upstream.Response, body []byte) *upstream.Response {
	ctx, cancel := context.WithCancelCause(ctx)
	return upstream.NewResponse(ctx, cancel, resp.Status, resp.Header, io.NopCloser(bytes.NewReader(body)))
}

// batch is one of several calls.
type batch struct {
	call   upstream.Call
	inputs int
}

// split divides the inputs of a call. An input that is an array of token numbers is one of them; numbers alone are one input together.
func (d Batched) split(call upstream.Call) []batch {
	var input rawjson.Span
	for m := range rawjson.Members(call.Body) {
		if string(m.Name()) == "input" {
			input = m.Value
		}
	}
	raw := input.Of(call.Body)
	var inputs []rawjson.Span
	for e := range rawjson.Elements(raw) {
		if c := e.Of(raw)[0]; c != '"' && c != '[' {
			return []batch{{call: call}}
		}
		inputs = append(inputs, e)
	}
	if len(inputs) <= d.Most {
		return []batch{{call: call}}
	}
	var all []batch
	for from := 0; from < len(inputs); from += d.Most {
		to := min(from+d.Most, len(inputs))
		part := call
		part.Header = call.Header.Clone()
		part.Body = append([]byte(nil), call.Body[:input.Start]...)
		part.Body = append(append(part.Body, '['), raw[inputs[from].Start:inputs[to-1].End]...)
		part.Body = append(append(part.Body, ']'), call.Body[input.End:]...)
		all = append(all, batch{part, to - from})
	}
	return all
}

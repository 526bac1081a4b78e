package embed

import (
	"strconv"

	"hydrallm/shared/openai"
)

// Join makes one answer of the answers to the parts of a request, in their order. inputs says how many inputs each part has. What a provider
// adds to the answer or to a vector is not kept. An error wraps classify.ErrEmptyAnswer, as that of Answer.
func Join(parts [][]byte, inputs []int) ([]byte, error) {
	var model []byte
	var usage openai.Usage
	native := true
	var vectors [][]byte
	size := 0
	for i, part := range parts {
		a, err := read(part)
		switch {
		case err != nil:
			return nil, err
		case len(a.entries) != inputs[i]:
			return nil, unusable("it holds %d vectors for %d inputs", len(a.entries), inputs[i])
		}
		for _, e := range a.entries {
			vectors = append(vectors, e.vector)
			size += len(e.vector)
		}
		if model == nil {
			model = a.model
		}
		native = native && a.native
		usage.Prompt, usage.Total = usage.Prompt+a.usage.Prompt, usage.Total+a.usage.Total
	}
	const room = len(`{"object":"embedding","index":2047,"embedding":},`)
	out := make([]byte, 0, size+room*len(vectors)+len(model)+1<<10)
	if native {
		out = append(out, `{"embeddings":[`...)
	} else {
		out = append(out, `{"object":"list","data":[`...)
	}
	for i, v := range vectors {
		if i > 0 {
			out = append(out, ',')
		}
		if native {
			out = append(out, v...)
			continue
		}
		out = strconv.AppendInt(append(out, `{"object":"embedding","index":`...), int64(i), 10)
		out = append(append(append(out, `,"embedding":`...), v...), '}')
	}
	out = append(out, ']')
	if model != nil {
		out = append(append(out, `,"model":`...), model...)
	}
	return append(appendUsage(out, usage), '}'), nil
}

package compat

import (
	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// observe learns the signatures of a whole answer, or of one chunk of a stream.
func (s *Signatures) observe(c *answer.Chunk) {
	for i := range c.Choices {
		for k := range c.Choices[i].Calls {
			if call := &c.Choices[i].Calls[k]; call.Extra {
				s.Learn(rawjson.Text(call.ID), rawjson.Text(rawSignature(rawjson.Get(call.Raw, "extra_content"))))
			}
		}
	}
}

// Watch observes an answer when it is read.
func (s *Signatures) Watch(resp *dialect.Response) {
	source, completion := resp.Events, resp.Completion
	resp.Events = func(r *openai.Reader) answer.Source {
		if source == nil {
			return observed{answer.NewReader(r), s}
		}
		return observed{source(r), s}
	}
	resp.Completion = func(out *answer.Chunk, body []byte) bool {
		translated := completion != nil && completion(out, body)
		if !translated {
			out.Parse(body)
		}
		s.observe(out)
		return translated
	}
}

// observed passes the events of a source on and learns from them.
type observed struct {
	answer.Source

	memory *Signatures
}

// Next passes the next event on.
func (o observed) Next() (*answer.Chunk, error) {
	c, err := o.Source.Next()
	if err != nil {
		return nil, err
	}
	o.memory.observe(c)
	return c, nil
}

// Package answertest takes answers through the hub as the dispatcher does, for tests of what stands on either side of it.
package answertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/surface/chat"
	"hydrallm/shared/openai"
)

// Options say what a client gets.
type Options struct {
	// To begins the answer to a client of another surface than Chat Completions, which is nil.
	To           func(d surface.Disclosure) surface.Answer
	Think        stream.Think
	Choices      int
	IncludeUsage bool
	Model        string // of a routed request
	Usage        []surface.Member
	Parts        []byte
}

// Filter gives the options of the repairs.
func (o Options) Filter() stream.Options {
	return stream.Options{Think: o.Think, Choices: o.Choices, Uniform: o.Model != "" || o.To != nil}
}

// Answer begins an answer.
func (o Options) Answer() surface.Answer {
	d := surface.Disclosure{Model: o.Model, Usage: o.Usage, Parts: o.Parts}
	if o.To != nil {
		return o.To(d)
	}
	return chat.NewAnswer(d, o.IncludeUsage)
}

// Chat is the source of a stream of Chat Completions.
func Chat(r io.Reader) answer.Source { return answer.NewReader(openai.NewReader(r, 0)) }

// Translate is the source of a stream of another protocol.
func Translate(t answer.Translator, r io.Reader) answer.Source {
	return answer.Translate(openai.NewReader(r, 0), t)
}

// Text writes the events of a source as they come, errors among them, without any repair. The error is that of the source, nil for io.EOF.
func Text(src answer.Source) (string, error) {
	out, to := []byte(nil), Options{}.Answer()
	for {
		c, err := src.Next()
		if errors.Is(err, io.EOF) {
			return string(out), nil
		}
		if err != nil {
			return string(out), err
		}
		switch c.Kind {
		case answer.Piece, answer.Comment:
			out = to.Append(out, c)
		case answer.Problem:
			out = openai.AppendData(out, c.Data)
		case answer.Done:
			out = append(out, openai.Done...)
		case answer.Nothing:
		}
	}
}

// Relay passes a stream on as the dispatcher does. A problem is data that reports an error; err says that the stream broke off.
func Relay(src answer.Source, o Options) (out string, problem []byte, err error) {
	f, to := stream.NewFilter(o.Filter()), o.Answer()
	var all []byte
	for {
		c, readErr := src.Next()
		if readErr != nil {
			break
		}
		step := f.Take(c)
		for _, c := range step.Chunks {
			all = to.Append(all, c)
		}
		if step.Problem != nil && Bad(step.Problem) {
			return string(all), slices.Clone(step.Problem), nil
		}
		if step.Done {
			break
		}
	}
	end, err := f.End()
	if err != nil {
		for _, c := range f.Abort() {
			all = to.Append(all, c)
		}
		return string(all), nil, err
	}
	for _, c := range end.Chunks {
		all = to.Append(all, c)
	}
	return string(to.End(all, end)), nil, nil
}

// Write writes chunks as a client of Chat Completions gets them.
func Write(chunks []*answer.Chunk) string {
	out, to := []byte(nil), Options{}.Answer()
	for _, c := range chunks {
		out = to.Append(out, c)
	}
	return string(out)
}

// Bad asks the table about an event that may be an error.
func Bad(data []byte) bool {
	v := classify.Of(classify.Answer{Status: 200, Body: data, Event: true})
	return v.Class != classify.Success || !json.Valid(data)
}

// Collect makes a stream the JSON of a whole answer.
func Collect(src answer.Source, o Options) (body, problem []byte, err error) {
	all := stream.NewCollector(o.Filter())
	for {
		c, err := src.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		step, err := all.Take(c)
		if err != nil {
			return nil, nil, err
		}
		if step.Problem != nil && Bad(step.Problem) {
			return nil, slices.Clone(step.Problem), nil
		}
		if step.Done {
			break
		}
	}
	whole, err := all.Whole()
	if err != nil {
		return nil, nil, err
	}
	return o.Answer().Whole(whole), nil, nil
}

// Completion gives a whole answer as a client gets it.
func Completion(body []byte, o Options) []byte {
	var c answer.Chunk
	c.Parse(bytes.TrimSpace(body))
	stream.Repair(&c, o.Filter())
	return o.Answer().Whole(&c)
}

// Synthesize gives a whole answer as the stream that a client asked for.
func Synthesize(body []byte, o Options) (string, error) {
	var c answer.Chunk
	c.Parse(body)
	f, to := stream.NewFilter(o.Filter()), o.Answer()
	var out []byte
	for _, c := range f.Take(&c).Chunks {
		out = to.Append(out, c)
	}
	end, err := f.End()
	if err != nil {
		return "", err
	}
	for _, c := range end.Chunks {
		out = to.Append(out, c)
	}
	return string(to.End(out, end)), nil
}

// Filled gives the JSON of a whole answer that a translator makes of a body, or the body if it makes none.
func Filled(fill func(out *answer.Chunk, body []byte) bool, body []byte) []byte {
	var c answer.Chunk
	if c.Reset(answer.Piece); !fill(&c, body) {
		return body
	}
	c.Plain = true
	return Options{}.Answer().Whole(&c)
}

// Answers says whether a body holds a whole answer.
func Answers(body []byte) bool {
	var c answer.Chunk
	c.Parse(body)
	return c.Answers()
}

// Usage reads the usage of a whole answer.
func Usage(body []byte) openai.Usage {
	var c answer.Chunk
	c.Parse(body)
	return stream.UsageOf(&c)
}

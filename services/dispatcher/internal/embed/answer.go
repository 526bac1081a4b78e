// Package embed turns what providers answer to an embeddings request into what the client expects: OpenAI's list, one vector for each input,
// in order, as numbers or as base64.
package embed

import (
	"bytes"
	"fmt"
	"strconv"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// maxAnswer bounds an answer, before and after its conversion.
const maxAnswer = 64 << 20

// Answer checks that the body of a 2xx answer holds the embeddings that the request asks for, one for each input, and makes it fit for the
// client: vectors in the format of the request, the model under the name that the client knows unless that is "", entries in the order of their
// indexes, and what is missing filled in. Number text stays as it is where nothing is converted, and so do members that are not known. Beside
// OpenAI's list it takes the answers of the native APIs of Ollama and Gemini; one of those, which names no model, has the name in the request.
// usage is zero when the answer tells none. The body is not changed; out may share it.
//
// An error wraps classify.ErrEmptyAnswer: the body is no answer to an embeddings request, or not a whole one.
func Answer(req *openai.EmbeddingRequest, body []byte, model string) (out []byte, usage openai.Usage, err error) {
	a, err := read(body)
	if err != nil {
		return nil, openai.Usage{}, err
	}
	if len(a.entries) != req.Inputs {
		return nil, openai.Usage{}, unusable("it holds %d vectors for %d inputs", len(a.entries), req.Inputs)
	}
	if a.native && a.model == nil && model == "" {
		model = req.Model
	}
	return a.build(format{req.Base64}, model)
}

func (a *answer) build(f format, model string) ([]byte, openai.Usage, error) {
	out, err := a.write(make([]byte, 0, len(a.body)+len(model)+256), f, model)
	if err != nil {
		return nil, openai.Usage{}, err
	}
	return out, a.usage, nil
}

// unusable is the error of an answer that is none. The text must hold nothing of the answer.
func unusable(text string, args ...any) error {
	return fmt.Errorf("reading embeddings: %s: %w", fmt.Sprintf(text, args...), classify.ErrEmptyAnswer)
}

// answer is what a provider sent, found but not converted.
type answer struct {
	body    []byte
	native  bool    // no list of OpenAI's: nothing but the vectors is passed on
	entries []entry // in the order of the inputs
	model   []byte  // as JSON, or nil
	usage   openai.Usage
}

// entry is one vector and what stands around it.
type entry struct {
	object []byte // nil when there is nothing around it
	vector []byte // JSON array or string
	index  int
	plain  bool // object is as it should be, apart from the format of the vector
}

func read(body []byte) (*answer, error) {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	switch {
	case len(body) > maxAnswer:
		return nil, unusable("it is larger than %d bytes", maxAnswer)
	case len(body) == 0 || body[0] != '{' || !rawjson.Valid(body):
		return nil, unusable("it is no JSON object")
	}
	a := &answer{body: body, native: true}
	var data, vectors, single []byte
	for m := range rawjson.Members(body) {
		value := m.Value.Of(body)
		switch string(m.Name()) {
		case "data":
			data, a.native = value, false
		case "embeddings":
			vectors = value
		case "embedding":
			single = value
		case "model":
			if value[0] == '"' {
				a.model = value
			}
		case "usage":
			a.usage = openai.ParseUsage(value)
		case "prompt_eval_count": // Ollama
			if n, err := strconv.ParseInt(string(value), 10, 64); err == nil && n > 0 {
				a.usage = openai.Usage{Prompt: n, Total: n}
			}
		}
	}
	var err error
	switch {
	case !a.native:
		err = a.readList(data)
	case vectors != nil:
		err = a.readVectors(vectors)
	case single != nil:
		a.entries = []entry{{vector: vectorOf(single)}}
	}
	if err == nil && len(a.entries) == 0 {
		err = unusable("it holds no vectors")
	}
	return a, err
}

// readVectors takes the vectors of a native answer, which come in the order of the inputs.
func (a *answer) readVectors(array []byte) error {
	for span := range rawjson.Elements(array) {
		if len(a.entries) == openai.MaxInputs {
			return unusable("it holds more than %d vectors", openai.MaxInputs)
		}
		a.entries = append(a.entries, entry{vector: vectorOf(span.Of(array)), index: len(a.entries)})
	}
	return nil
}

// vectorOf gives the vector of a native entry: itself, or, at Gemini, the values inside.
func vectorOf(raw []byte) []byte {
	if raw[0] == '{' {
		return rawjson.Get(raw, "values")
	}
	return raw
}

// readList takes the entries of OpenAI's list and puts them in the order of their indexes, which must be complete.
func (a *answer) readList(array []byte) error {
	var list []entry
	for span := range rawjson.Elements(array) {
		if len(list) == openai.MaxInputs {
			return unusable("it holds more than %d vectors", openai.MaxInputs)
		}
		e, err := readEntry(span.Of(array), len(list))
		if err != nil {
			return err
		}
		list = append(list, e)
	}
	a.entries = make([]entry, len(list))
	for _, e := range list {
		if e.index >= len(list) || a.entries[e.index].object != nil {
			return unusable("its indexes have gaps")
		}
		a.entries[e.index] = e
	}
	return nil
}

// readEntry reads one entry of a list. Without an index it belongs to the input at its own position.
func readEntry(object []byte, position int) (entry, error) {
	e := entry{object: object, index: position}
	indexes, vectors, objects := 0, 0, 0
	for m := range rawjson.Members(object) {
		value := m.Value.Of(object)
		switch string(m.Name()) {
		case "index":
			if value[0] == 'n' {
				continue
			}
			indexes++
			n, err := strconv.ParseUint(string(value), 10, 32)
			if err != nil {
				return e, unusable("entry %d has an index that is none", position)
			}
			e.index = int(n)
		case "embedding":
			vectors++
			e.vector = value
		case "object":
			if rawjson.Is(value, "embedding") {
				objects++
			}
		}
	}
	if e.vector == nil {
		return e, unusable("entry %d has no vector", position)
	}
	e.plain = indexes == 1 && vectors == 1 && objects == 1
	return e, nil
}

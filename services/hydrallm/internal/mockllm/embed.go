package mockllm

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// Sizes of vectors and of lists of texts.
const (
	defaultDimensions = 256
	maxDimensions     = 4096
	maxTexts          = 2048
)

// embedRequest is what the mock reads of a request to Embeddings.
type embedRequest struct {
	Model          string          `json:"model"`
	Input          json.RawMessage `json:"input"` // text, texts, tokens, or lists of tokens
	Dimensions     *int            `json:"dimensions"`
	EncodingFormat string          `json:"encoding_format"`
}

func (s *Server) embed(w http.ResponseWriter, r *http.Request) {
	var req embedRequest
	_, fault := read(w, r, &req)
	if fault == nil {
		fault = req.check()
	}
	inputs := req.inputs()
	if fault == nil && (len(inputs) == 0 || len(inputs) > maxTexts) {
		fault = invalid("input", "'$.input' is invalid.")
	}
	if fault != nil {
		fault.send(w)
		return
	}
	dimensions := defaultDimensions
	if req.Dimensions != nil {
		dimensions = *req.Dimensions
	}
	type item struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
	var items []item
	tokens := 0
	for i, words := range inputs {
		tokens += len(words)
		v := vector(words, dimensions)
		var embedding any = v
		if req.EncodingFormat == "base64" {
			embedding = packed(v)
		}
		items = append(items, item{"embedding", i, embedding})
	}
	send(w, http.StatusOK, encode(map[string]any{
		"object": "list", "data": items, "model": Embedding, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
	}))
}

func (req *embedRequest) check() *failure {
	switch {
	case req.Model == Unavailable:
		return failureOf(http.StatusServiceUnavailable)
	case req.Model != Embedding:
		return failureOf(http.StatusNotFound)
	case req.Dimensions != nil && (*req.Dimensions < 1 || *req.Dimensions > maxDimensions):
		return invalid("dimensions", "The dimensions are out of range.")
	case req.EncodingFormat != "" && req.EncodingFormat != "float" && req.EncodingFormat != "base64":
		return invalid("encoding_format", "The encoding format must be float or base64.")
	}
	return nil
}

// inputs gives the words of each text. Tokens count as words. It is nil when the input has another form, or holds nothing.
func (req *embedRequest) inputs() [][]string {
	var list []json.RawMessage
	if json.Unmarshal(req.Input, &list) != nil {
		list = []json.RawMessage{req.Input}
	}
	var all [][]string
	var tokens []int
	if json.Unmarshal(req.Input, &tokens) == nil {
		list = []json.RawMessage{req.Input}
	}
	for _, one := range list {
		var text string
		var words []string
		switch {
		case json.Unmarshal(one, &text) == nil:
			words = strings.Fields(strings.ToLower(text))
		case json.Unmarshal(one, &tokens) == nil:
			for _, t := range tokens {
				words = append(words, strconv.Itoa(t))
			}
		}
		if len(words) == 0 {
			return nil
		}
		all = append(all, words)
	}
	return all
}

// vector adds up a direction for each word, so that texts with the same words are near each other, and makes the length 1.
func vector(words []string, dimensions int) []float32 {
	sum := make([]float64, dimensions)
	for _, word := range words {
		h := fnv.New64a()
		_, _ = h.Write([]byte(word)) // a hash takes everything
		state := h.Sum64()
		for i := range sum { // a generator of Marsaglia's (xorshift64)
			state ^= state << 13
			state ^= state >> 7
			state ^= state << 17
			sum[i] += float64(int32(state>>32)) / math.MaxInt32
		}
	}
	var square float64
	for _, x := range sum {
		square += x * x
	}
	v := make([]float32, dimensions)
	for i, x := range sum {
		v[i] = float32(x / math.Sqrt(max(square, math.SmallestNonzeroFloat64)))
	}
	return v
}

// packed is a vector as base64 of its little-endian floats.
func packed(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}

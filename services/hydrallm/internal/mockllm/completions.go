package mockllm

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// completionRequest is what the mock reads of a request to Completions.
type completionRequest struct {
	Model         string          `json:"model"`
	Prompt        json.RawMessage `json:"prompt"` // text, texts, or tokens
	Suffix        string          `json:"suffix"`
	Echo          bool            `json:"echo"`
	Logprobs      *int            `json:"logprobs"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	N         *int            `json:"n"`
	MaxTokens *int            `json:"max_tokens"`
	Stop      json.RawMessage `json:"stop"`
}

type textChoice struct {
	Text         string          `json:"text"`
	Index        int             `json:"index"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
}

type textCompletion struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Choices []textChoice    `json:"choices"`
	Usage   json.RawMessage `json:"usage,omitempty"`
}

// completions does what the prompt says as if it were the message of a user. With a suffix it says between what it writes.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	var in completionRequest
	id, fault := read(w, r, &in)
	if fault != nil {
		fault.send(w)
		return
	}
	prompts := in.prompts()
	req := request{Model: in.Model, N: in.N, MaxTokens: in.MaxTokens, Stop: in.Stop, Stream: in.Stream, StreamOptions: in.StreamOptions}
	var turns []turn
	total := usage{}
	for _, prompt := range prompts {
		req.Messages = []message{{Role: "user", Content: prompt}}
		if fault = req.check(); fault != nil {
			fault.send(w)
			return
		}
		t := req.turn()
		if t.failure != nil {
			t.failure.send(w)
			return
		}
		if in.Suffix != "" {
			t.text = new("between " + strconv.Quote(prompt) + " and " + strconv.Quote(in.Suffix))
		}
		if t.text == nil {
			t.text = new("")
		}
		if in.Echo {
			t.text = new(prompt + *t.text)
		}
		total.Prompt += t.usage.Prompt
		total.Completion += t.usage.Completion
		turns = append(turns, t)
	}
	if len(turns) == 0 {
		invalid("prompt", "you must provide a prompt").send(w)
		return
	}
	total.Total = total.Prompt + total.Completion
	out := textCompletion{ID: "cmpl-mock-" + id, Object: "text_completion", Created: created, Model: Model}
	if in.Stream {
		s.streamText(w, r, &req, out, turns, in.Logprobs, total)
		return
	}
	for p := range turns {
		for i := range req.choices() {
			out.Choices = append(out.Choices, textChoice{
				Text: *turns[p].text, Index: p*req.choices() + i, Logprobs: logprobs(in.Logprobs, *turns[p].text), FinishReason: &turns[p].finish,
			})
		}
	}
	out.Usage = encode(total)
	send(w, http.StatusOK, encode(out))
}

// prompts gives the texts to be continued. Tokens count as words.
func (in *completionRequest) prompts() []string {
	var one string
	var several []string
	var tokens []int
	switch {
	case json.Unmarshal(in.Prompt, &one) == nil && one != "":
		return []string{one}
	case json.Unmarshal(in.Prompt, &tokens) == nil && len(tokens) > 0:
		words := make([]string, len(tokens))
		for i, t := range tokens {
			words[i] = strconv.Itoa(t)
		}
		return []string{strings.Join(words, " ")}
	case json.Unmarshal(in.Prompt, &several) == nil:
		return several
	}
	return nil
}

// logprobs are those of a text of which every word was sure.
func logprobs(asked *int, text string) json.RawMessage {
	if asked == nil {
		return null
	}
	out := struct {
		Tokens  []string             `json:"tokens"`
		Sure    []float64            `json:"token_logprobs"`
		Top     []map[string]float64 `json:"top_logprobs"`
		Offsets []int                `json:"text_offset"`
	}{}
	at := 0
	for word := range words(text) {
		out.Tokens, out.Sure, out.Offsets = append(out.Tokens, word), append(out.Sure, 0), append(out.Offsets, at)
		out.Top = append(out.Top, map[string]float64{word: 0})
		at += len(word)
	}
	return encode(out)
}

// streamText sends turns in chunks of a word.
func (s *Server) streamText(w http.ResponseWriter, r *http.Request, req *request, chunk textCompletion, turns []turn, asked *int, total usage) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	out := events{w: w, flush: http.NewResponseController(w)}
	if req.StreamOptions.IncludeUsage {
		chunk.Usage = null // it is in the last chunk alone
	}
	for p := range turns {
		emit := func(text string, probs json.RawMessage, finish *string) {
			for i := range req.choices() {
				chunk.Choices = []textChoice{{Text: text, Index: p*req.choices() + i, Logprobs: probs, FinishReason: finish}}
				out.data(encode(chunk))
			}
		}
		for word := range words(*turns[p].text) {
			if !pause(r, s.cfg.Delay) || out.err != nil {
				return
			}
			emit(word, logprobs(asked, word), nil)
		}
		emit("", null, &turns[p].finish)
	}
	if req.StreamOptions.IncludeUsage {
		chunk.Choices, chunk.Usage = []textChoice{}, encode(total)
		out.data(encode(chunk))
	}
	out.data([]byte("[DONE]"))
}

package intent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// ollama calls the server of the models that the classifier uses. Its address is the operator's and may be internal.
type ollama struct {
	url    string
	client *http.Client
}

// Limits of calls.
const (
	maxBatch  = 64       // texts of one call
	maxAnswer = 16 << 20 // bytes
)

func newOllama(url string) *ollama {
	url = strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/v1") // some give the address of its OpenAI API
	return &ollama{url: strings.TrimSuffix(url, "/"), client: &http.Client{
		// One to which somebody else leads is not the one that was configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the server redirects") },
		Transport: &http.Transport{
			MaxIdleConnsPerHost: maxQueries, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		},
	}}
}

// embed gives a vector of length 1 for each text, in their order. The server is Ollama, POST /api/embed.
func (o *ollama) embed(ctx context.Context, model string, texts []string) ([]vector, error) {
	var all []vector
	for len(texts) > 0 {
		batch := texts[:min(maxBatch, len(texts))]
		texts = texts[len(batch):]
		var answer struct {
			Embeddings []vector `json:"embeddings"`
		}
		question := map[string]any{"model": model, "input": batch, "truncate": true, "keep_alive": "30m"}
		if err := o.call(ctx, "/api/embed", question, &answer); err != nil {
			return nil, fmt.Errorf("embedding: %w", err)
		}
		if len(answer.Embeddings) != len(batch) {
			return nil, fmt.Errorf("embedding: %d vectors for %d texts", len(answer.Embeddings), len(batch))
		}
		all = append(all, answer.Embeddings...)
	}
	for i, v := range all {
		if len(v) != len(all[0]) || !v.normalize() {
			return nil, fmt.Errorf("embedding: vector %d can't be used", i)
		}
	}
	return all, nil
}

// chat gives the answer of a model that is to be an array of strings. The server is Ollama, POST /api/chat.
func (o *ollama) chat(ctx context.Context, model, system, user string) (content string, err error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var answer struct {
		Message message `json:"message"`
	}
	err = o.call(ctx, "/api/chat", map[string]any{
		"model": model, "stream": false, "think": false, "options": map[string]any{"temperature": 0},
		"format":   map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		"messages": []message{{"system", system}, {"user", user}},
	}, &answer)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", model, err)
	}
	return answer.Message.Content, nil
}

func (o *ollama) call(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := o.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d", resp.StatusCode)
	case err != nil:
		return err
	case len(data) > maxAnswer:
		return fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	return json.Unmarshal(data, answer)
}

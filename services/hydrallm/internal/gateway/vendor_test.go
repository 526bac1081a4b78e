package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/fixtures"
)

// startOllama runs an Ollama that has two models.
func startOllama(t *testing.T) (fake *fakellm.Server, url string) {
	t.Helper()
	fake = fakellm.Start(t)
	fake.Handle(fakellm.Talk("from ollama"))
	fake.Page("/api/tags", `{"models":[
		{"name":"bge-m3:latest","details":{"context_length":8192},"capabilities":["embedding"]},
		{"name":"qwen3:8b","details":{"context_length":40960},"capabilities":["completion","tools"]}]}`)
	return fake, fake.URL()
}

// sample answers with a fixture.
func sample(file string) fakellm.Answer {
	f := fixtures.Get(file)
	return fakellm.Answer{Status: f.Status, Header: map[string]string{"Content-Type": f.Header.Get("Content-Type")}, Body: f.Body}
}

// spoken answers with one fixture to requests for a stream, with the other one else.
func spoken(streams func(fakellm.Request) bool, stream, whole string) func(fakellm.Request) fakellm.Answer {
	return func(r fakellm.Request) fakellm.Answer {
		if streams(r) {
			return sample(stream)
		}
		return sample(whole)
	}
}

// answer is what a client sees of a chat completion, streamed or not.
type answer struct {
	text, model string
	header      http.Header
	usage       gjson.Result // with what the gateway adds
	raw         string       // the completion, or the last chunk with a choice
}

// ask asks with the SDK, in a stream if that is wanted.
func (x running) ask(t *testing.T, stream bool, q openai.ChatCompletionNewParams) (a answer, err error) {
	t.Helper()
	c := x.sdk(t)
	var resp *http.Response
	if !stream {
		got, err := c.Chat.Completions.New(t.Context(), q, option.WithResponseInto(&resp))
		if err != nil {
			return a, err
		}
		raw := got.RawJSON()
		return answer{got.Choices[0].Message.Content, got.Model, resp.Header, gjson.Get(raw, "usage"), raw}, nil
	}
	q.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.Chat.Completions.NewStreaming(t.Context(), q, option.WithResponseInto(&resp))
	var acc openai.ChatCompletionAccumulator
	for s.Next() {
		chunk := s.Current()
		require.True(t, acc.AddChunk(chunk))
		if u := gjson.Get(chunk.RawJSON(), "usage"); u.IsObject() {
			a.usage = u
		}
		if len(chunk.Choices) > 0 {
			a.raw = chunk.RawJSON()
		}
	}
	if err := s.Err(); err != nil {
		return a, err
	}
	a.text, a.model, a.header = acc.Choices[0].Message.Content, acc.Model, resp.Header
	return a, s.Close()
}

// mustAsk is ask for a request that is answered.
func (x running) mustAsk(t *testing.T, stream bool, q openai.ChatCompletionNewParams) answer {
	t.Helper()
	a, err := x.ask(t, stream, q)
	require.NoError(t, err)
	return a
}

// by requires that provider and model are disclosed, and the same, in headers and usage.
func (a answer) by(t *testing.T, provider, model, reason string) {
	t.Helper()
	require.Equal(t, []string{provider, model, reason}, []string{
		a.header.Get("X-Gateway-Provider"), a.header.Get("X-Gateway-Model"), a.header.Get("X-Routing-Reason"),
	})
	require.Equal(t, []string{provider, model, reason}, []string{
		a.usage.Get("gateway_provider").Str, a.usage.Get("gateway_model").Str, a.usage.Get("routing_reason").Str,
	}, a.usage.Raw)
}

// do makes a request without the SDK.
func (x running) do(t *testing.T, method, path, body string, header ...string) (status int, answer string) {
	t.Helper()
	status, answer, err := x.try(t.Context(), method, path, body, header...)
	require.NoError(t, err)
	return status, answer
}

// try is do for a goroutine that is not the test's.
func (x running) try(ctx context.Context, method, path, body string, header ...string) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, x.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return 0, "", err
	}
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), errors.Join(err, resp.Body.Close())
}

// refused requires that an error of the SDK is an answer of this status.
func refused(t *testing.T, err error, status int) *openai.Error {
	t.Helper()
	var failure *openai.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, status, failure.StatusCode)
	return failure
}

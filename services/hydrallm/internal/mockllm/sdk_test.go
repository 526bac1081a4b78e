package mockllm_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/mockllm"
)

func sdk(t *testing.T, s *mockllm.Server) openai.Client {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return openai.NewClient(option.WithBaseURL("http://"+s.Addr().String()+"/v1"), option.WithAPIKey("unused"), option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: tr}))
}

// task is what an agent is asked to do, with two tools.
func task(text string) openai.ChatCompletionNewParams {
	function := func(name, parameter string) openai.ChatCompletionToolUnionParam {
		return openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: name, Parameters: shared.FunctionParameters{
			"type": "object", "properties": map[string]any{parameter: map[string]any{"type": "string"}}, "required": []string{parameter},
		}})
	}
	return openai.ChatCompletionNewParams{
		Model: mockllm.Model, Tools: []openai.ChatCompletionToolUnionParam{function("get_weather", "city"), function("get_time", "zone")},
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
	}
}

// An agent that calls what it is told to call comes to an end, and each of its turns is the next line of the script.
func TestAgent(t *testing.T) {
	t.Parallel()
	const script = "Find out what it is like.\ncall get_weather {\"city\": \"Rome\"}\ncall get_time {\"zone\": \"CET\"}\nthen call get_weather with {\"city\": \"Oslo\"}"
	for name, ask := range map[string]func(t *testing.T, c *openai.Client, p openai.ChatCompletionNewParams) openai.ChatCompletionMessage{
		"whole": func(t *testing.T, c *openai.Client, p openai.ChatCompletionNewParams) openai.ChatCompletionMessage {
			t.Helper()
			got, err := c.Chat.Completions.New(t.Context(), p)
			require.NoError(t, err)
			return got.Choices[0].Message
		},
		"stream": func(t *testing.T, c *openai.Client, p openai.ChatCompletionNewParams) openai.ChatCompletionMessage {
			t.Helper()
			stream := c.Chat.Completions.NewStreaming(t.Context(), p)
			defer func() { require.NoError(t, stream.Close()) }()
			var all openai.ChatCompletionAccumulator
			for stream.Next() {
				require.True(t, all.AddChunk(stream.Current()))
			}
			require.NoError(t, stream.Err())
			return all.Choices[0].Message
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := sdk(t, start(t, 0))
			p := task(script)
			var called []string
			ids := map[string]bool{}
			for range 3 {
				m := ask(t, &client, p)
				if len(m.ToolCalls) == 0 {
					require.Equal(t, "The tool get_weather answered: result 3", m.Content)
					break
				}
				p.Messages = append(p.Messages, m.ToParam())
				for _, c := range m.ToolCalls {
					require.False(t, ids[c.ID], "an id is used once")
					ids[c.ID] = true
					called = append(called, c.Function.Name+" "+c.Function.Arguments)
					p.Messages = append(p.Messages, openai.ToolMessage("result "+string(rune('0'+len(called))), c.ID))
				}
			}
			require.Equal(t, []string{`get_weather {"city": "Rome"}`, `get_time {"zone": "CET"}`, `get_weather {"city": "Oslo"}`}, called)
		})
	}
}

// The errors that a message asks for are those that a client expects.
func TestScriptedErrors(t *testing.T) {
	t.Parallel()
	client := sdk(t, start(t, 0))
	_, err := client.Chat.Completions.New(t.Context(), task("fail 429 after 7s"))
	var refused *openai.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	require.Equal(t, "rate_limit_exceeded", refused.Code)
	require.Equal(t, "7", refused.Response.Header.Get("Retry-After"))

	stream := client.Chat.Completions.NewStreaming(t.Context(), task("say one two three four\nbreak off"))
	var said strings.Builder
	for stream.Next() {
		said.WriteString(stream.Current().Choices[0].Delta.Content)
	}
	require.Error(t, stream.Err(), "the connection breaks")
	require.Equal(t, "one two ", said.String())
	require.NoError(t, stream.Close())

	_, err = client.Chat.Completions.New(t.Context(), task("break off"))
	require.Error(t, err)
}

// Nothing is sent before the wait is over.
func TestWait(t *testing.T) {
	t.Parallel()
	client := sdk(t, start(t, 0))
	begun := time.Now()
	_, err := client.Chat.Completions.New(t.Context(), task("wait 30ms\nsay hi"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begun), 30*time.Millisecond)
}

// Texts with the same words are near each other, others are not.
func TestEmbeddingsTellTextsApart(t *testing.T) {
	t.Parallel()
	client := sdk(t, start(t, 0))
	got, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: mockllm.Embedding,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{
			"the cat sat on the mat", "on the mat the cat sat", "a cat sat there", "quarterly revenue grew",
		}},
	})
	require.NoError(t, err)
	require.Len(t, got.Data, 4)
	near := func(i, j int) float64 {
		var sum float64
		for k := range got.Data[i].Embedding {
			sum += got.Data[i].Embedding[k] * got.Data[j].Embedding[k]
		}
		return sum
	}
	require.InDelta(t, 1, near(0, 1), 1e-5)
	require.Greater(t, near(0, 2), 0.2)
	require.Less(t, near(0, 3), 0.2)
	require.Equal(t, int64(6+6+4+3), got.Usage.PromptTokens)
}

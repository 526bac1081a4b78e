package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/mockllm"
	"hydrallm/shared/testkit/freeport"
)

// startMock runs a gateway before the mock upstream: model "m", whose first upstream always fails, and the default model of moderations.
func startMock(t *testing.T) running {
	t.Helper()
	mock := mockllm.New(mockllm.Config{Listen: "127.0.0.1:0"})
	require.NoError(t, mock.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, mock.Stop(context.Background())) })
	return serve(t, configured(t, freeport.Port(t), fmt.Sprintf(`
providers:
  - {id: mock, url: "http://%s/v1", key: key-of-the-mock}
upstreams:
  - {id: fails, provider: mock, model: unavailable}
  - {id: answers, provider: mock, model: mock}
  - {id: native, provider: mock, model: mock, completions: native}
models:
  - {name: m, upstreams: [fails, answers]}
  - {name: fim, upstreams: [fails, native]}
  - {name: omni-moderation-latest, upstreams: [answers]}
routing: {final_fallback: "", aliases: {}}
`, mock.Addr())))
}

// the rest of OpenAI's API through the official client, with failover.
func TestOpenAISDKPassthrough(t *testing.T) {
	t.Parallel()
	x := startMock(t)
	c := x.sdk(t)

	flagged, err := c.Moderations.New(t.Context(), openai.ModerationNewParams{Input: openai.ModerationNewParamsInputUnion{OfStringArray: []string{"kind", "violence"}}})
	require.NoError(t, err)
	require.Len(t, flagged.Results, 2)
	require.True(t, flagged.Results[1].Flagged)

	var answered *http.Response
	speech, err := c.Audio.Speech.New(t.Context(), openai.AudioSpeechNewParams{Model: "m", Input: "hi", Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("alloy")}},
		option.WithResponseInto(&answered))
	require.NoError(t, err)
	sound, err := io.ReadAll(speech.Body)
	require.NoError(t, err)
	require.NoError(t, speech.Body.Close())
	require.Equal(t, "RIFF", string(sound[:4]))
	require.Len(t, sound, 844)
	require.Equal(t, "audio/mpeg", speech.Header.Get("Content-Type"))
	require.Equal(t, "answers", answered.Header.Get("X-Gateway-Upstream"))

	// Larger than what a message of the bus may be.
	file := bytes.Repeat([]byte("--RIFF\r\n\x00\xff"), 300_000)
	heard, err := c.Audio.Transcriptions.New(t.Context(), openai.AudioTranscriptionNewParams{
		Model: "m", File: openai.File(bytes.NewReader(file), "talk.wav", "audio/wav"), Language: openai.String("de"),
	})
	require.NoError(t, err)
	require.Equal(t, "The file is talk.wav of 3000000 bytes.", heard.Text)

	stream := c.Audio.Transcriptions.NewStreaming(t.Context(), openai.AudioTranscriptionNewParams{
		Model: "m", File: openai.File(strings.NewReader("xy"), "a.wav", "audio/wav"),
	})
	var text strings.Builder
	for stream.Next() {
		text.WriteString(stream.Current().Delta)
	}
	require.NoError(t, stream.Err())
	require.NoError(t, stream.Close())
	require.Equal(t, "The file is a.wav of 2 bytes.", text.String())

	drawn, err := c.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "m", Prompt: "a lamp", N: openai.Int(2)})
	require.NoError(t, err)
	require.Len(t, drawn.Data, 2)
	require.EqualValues(t, 11, drawn.Usage.TotalTokens)
	edited, err := c.Images.Edit(t.Context(), openai.ImageEditParams{
		Model: "m", Prompt: "a lamp", Image: openai.ImageEditParamsImageUnion{OfFile: openai.File(strings.NewReader("png"), "a.png", "image/png")},
	})
	require.NoError(t, err)
	require.Len(t, edited.Data, 1)

	_, err = c.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "dall-e-3", Prompt: "a lamp"})
	var refused *openai.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusNotFound, refused.StatusCode)
	require.Contains(t, refused.Message, "add it to 'models' in the configuration")
}

// Completions through the official client, streamed and not, in front of a chat model and of one that has the protocol itself.
func TestOpenAISDKCompletions(t *testing.T) {
	t.Parallel()
	x := startMock(t)
	c := x.sdk(t)
	ask := openai.CompletionNewParams{Model: "m", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("say Hello there END x")}, Stop: openai.CompletionNewParamsStopUnion{OfString: openai.String(" END")}}
	whole, err := c.Completions.New(t.Context(), ask)
	require.NoError(t, err)
	require.Len(t, whole.Choices, 1)
	require.Equal(t, "Hello there", whole.Choices[0].Text)
	require.EqualValues(t, "stop", whole.Choices[0].FinishReason)
	require.Positive(t, whole.Usage.TotalTokens)

	ask.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.Completions.NewStreaming(t.Context(), ask)
	var text strings.Builder
	var tokens int64
	for s.Next() {
		for _, choice := range s.Current().Choices {
			text.WriteString(choice.Text)
		}
		tokens += s.Current().Usage.TotalTokens
	}
	require.NoError(t, s.Err())
	require.NoError(t, s.Close())
	require.Equal(t, "Hello there", text.String())
	require.Equal(t, whole.Usage.TotalTokens, tokens)

	ask.Suffix = openai.String("end")
	_, err = c.Completions.New(t.Context(), ask)
	var refused *openai.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusBadRequest, refused.StatusCode)
	require.Equal(t, "suffix", refused.Param)

	ask.Model, ask.Prompt = "fim", openai.CompletionNewParamsPromptUnion{OfArrayOfStrings: []string{"def f(", "def g("}}
	ask.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	filled, err := c.Completions.New(t.Context(), ask)
	require.NoError(t, err)
	require.Len(t, filled.Choices, 2)
	require.Equal(t, `between "def g(" and "end"`, filled.Choices[1].Text)
}

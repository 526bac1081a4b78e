package stream_test

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/testkit/fixtures"
)

// kept is what a client must get of a recorded stream.
type kept struct {
	content, reasoning, finish string
	tools                      []tool
	same                       bool // byte for byte, with think tags off
	problem                    bool
	err                        error
}

var oslo = `{"city":"Oslo"}`

// streams are the recorded streams of the chat API, whose defects the fixtures describe.
var streams = map[string]kept{
	"openai/stream-text.sse":                {content: "The lamp is green.", finish: "stop"},
	"openai/stream-text-nousage.sse":        {content: "Done — ✓", finish: "stop", same: true},
	"openai/stream-tools.sse":               {finish: "tool_calls", tools: []tool{{"call_a1", "get_time", "function", oslo}, {"call_a2", "list_rooms", "function", "{}"}}, same: true},
	"openai/stream-refusal.sse":             {finish: "stop", same: true},
	"openai/stream-logprobs.sse":            {content: "Yes", finish: "stop", same: true},
	"openai/stream-truncated.sse":           {err: classify.ErrTruncated},
	"openai/stream-error-event.sse":         {problem: true},
	"deepseek/stream-reasoning.sse":         {content: "Green.", reasoning: "Look.", finish: "stop"},
	"deepseek/stream-tools.sse":             {finish: "tool_calls"},
	"deepseek/stream-resource.sse":          {problem: true},
	"gemini/stream-text.sse":                {finish: "stop"},
	"gemini/stream-tools.sse":               {finish: "tool_calls", tools: []tool{{"function-call-1001", "get_time", "function", oslo}, {"*", "get_time", "function", `{"city":"Rome"}`}}},
	"gemini/stream-filtered.sse":            {finish: "content_filter"},
	"groq/stream-tools.sse":                 {finish: "tool_calls", tools: []tool{{"fxg7k2m4p", "get_time", "function", oslo}, {"fxg7k2m4q", "list_rooms", "function", "{}"}}, same: true},
	"groq/stream-midstream-error.sse":       {problem: true},
	"cerebras/stream-tools.sse":             {finish: "tool_calls"},
	"cerebras/stream-midstream-error.sse":   {problem: true},
	"mistral/stream-tools.sse":              {finish: "tool_calls", tools: []tool{{"fxA1b2C3d", "get_time", "function", `{"city": "Oslo"}`}}},
	"minimax/stream-think.sse":              {content: "\n\nThe lamp is <green>.", reasoning: "\nLook at the lamp.\n", finish: "stop"},
	"ollama/stream-tools.sse":               {finish: "tool_calls"},
	"ollama/stream-tools-legacy.sse":        {finish: "tool_calls"},
	"ollama/stream-hidden-error.sse":        {err: classify.ErrTruncated},
	"openrouter/stream-text.sse":            {content: "The lamp is green.", finish: "stop"},
	"openrouter/stream-error-first.sse":     {problem: true},
	"openrouter/stream-midstream-error.sse": {problem: true},
	"llamacpp/stream-legacy-error.sse":      {problem: true},
	"vllm/stream-tools.sse":                 {finish: "tool_calls"},
	"vllm/stream-midstream-error.sse":       {problem: true},
	"lmstudio/stream-error.sse":             {problem: true},
	"openclaw/stream-error.sse":             {problem: true},
	"generic/stream-crlf-nospace.sse":       {finish: "stop", same: true},
	"generic/stream-no-tail-blank.sse":      {finish: "stop"},
	"generic/stream-multiline-data.sse":     {finish: "stop"},
}

// Every recorded stream of the chat API becomes one that a strict client reads, whatever the reads, and JSON on demand.
func TestRecordedStreams(t *testing.T) {
	t.Parallel()
	for name, want := range streams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := string(fixtures.Get(name).Body)
			out, problem, err := pass(text, options{IncludeUsage: strings.Contains(text, `"choices":[],`)})
			require.Equal(t, want.problem, problem != nil, "%s", problem)
			require.ErrorIs(t, err, want.err)
			if want.problem || want.err != nil {
				return
			}
			require.NoError(t, err)
			if want.same {
				require.Equal(t, text, out)
			}
			readStrictly(t, out)

			out, _, err = pass(text, options{Think: stream.ThinkSplit, IncludeUsage: true})
			require.NoError(t, err)
			got := readStrictly(t, out)
			require.Equal(t, want.finish, got.finish[0])
			if want.content != "" || want.reasoning != "" {
				require.Equal(t, want.content, got.content[0])
				require.Equal(t, want.reasoning, got.reasoning[0])
			}
			if want.tools != nil {
				requireTools(t, want.tools, out)
			}
			require.Equal(t, strings.Contains(text, `"usage":{`), len(got.usage) == 1)

			body := collect(t, text)
			require.Equal(t, want.finish, gjson.GetBytes(body, "choices.0.finish_reason").Str)
			require.Equal(t, got.content[0], gjson.GetBytes(body, "choices.0.message.content").Str)
			require.Len(t, gjson.GetBytes(body, "choices.0.message.tool_calls").Array(), len(got.tools[0]))
		})
	}
}

// collect reads a stream byte by byte and gives the JSON answer.
func collect(tb testing.TB, text string) []byte {
	tb.Helper()
	src := answertest.Chat(iotest.OneByteReader(strings.NewReader(text)))
	body, problem, err := answertest.Collect(src, options{Think: stream.ThinkSplit})
	require.NoError(tb, err)
	require.Nil(tb, problem)
	require.True(tb, gjson.ValidBytes(body), "%s", body)
	return body
}

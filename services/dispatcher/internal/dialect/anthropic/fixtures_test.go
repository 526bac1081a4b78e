package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/goldentest"
)

// translate reads the translation of a stream to its end.
func translate(tb testing.TB, src io.Reader) string {
	tb.Helper()
	out, err := answertest.Text(events(src))
	require.NoError(tb, err)
	return out
}

// events is the translation of a stream.
func events(src io.Reader) answer.Source {
	return answertest.Translate(anthropic.Translator{}.Events(), src)
}

// completion gives the translation of a whole answer, or the body if it is none.
func completion(body []byte) []byte {
	return answertest.Filled(anthropic.Translator{}.Completion, body)
}

// Every recorded answer, as a client of OpenAI gets it. The clock of the bubble makes the moment the same each time.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures.Of("anthropic") {
		name := path.Base(f.File)
		var got func() []byte
		switch {
		case strings.HasPrefix(name, "message-"):
			got = func() []byte { return append(completion(f.Body), '\n') }
		case f.Kind() == "sse":
			got = func() []byte { return []byte(translate(t, bytes.NewReader(f.Body))) }
		default:
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { goldentest.Compare(t, name, got()) })
		})
	}
}

// A body that is no message, with whatever status it came, stays what it is.
func TestOtherBodies(t *testing.T) {
	t.Parallel()
	bodies := []string{
		"", "null", "[]", `{"type":"message"`, `{"type":"message"}`, `{"type":"message","content":null}`, `{"content":[]}`, "<html>", "{\"type\":\"message\",\"content\":[\"\xff\"]}",
		`{"object":"chat.completion","choices":[]}`,
	}
	for _, f := range fixtures.Of("anthropic") {
		if f.Kind() == "json" && !strings.HasPrefix(path.Base(f.File), "message-") {
			bodies = append(bodies, string(f.Body))
		}
	}
	for _, body := range bodies {
		require.Equal(t, body, string(completion([]byte(body))))
	}
}

// answered is what a strict client reads.
type answered struct {
	content, reasoning, finish string
	names, args                []string
	usage                      openai.Usage
	problem                    string
	err                        error
}

// recorded are the streams through the filter that comes behind the dialect.
var recorded = map[string]answered{
	"anthropic/stream-text.sse":            {content: "The lamp is green.", finish: "stop", usage: openai.Usage{Prompt: 12, Completion: 8, Total: 20}},
	"anthropic/stream-tools.sse":           {content: "Checking.", finish: "tool_calls", names: []string{"get_time", "list_rooms"}, args: []string{`{"city": "Oslo"}`, `{}`}, usage: openai.Usage{Prompt: 12, Completion: 40, Total: 52}},
	"anthropic/stream-thinking.sse":        {content: "Green.", reasoning: "Look at the lamp.", finish: "stop", usage: openai.Usage{Prompt: 12, Completion: 25, Total: 37}},
	"anthropic/stream-usage-drift.sse":     {content: "ok", finish: "stop", usage: openai.Usage{Prompt: 84, Completion: 2, Total: 86, Cached: 64}},
	"anthropic/stream-refusal.sse":         {finish: "content_filter", usage: openai.Usage{Prompt: 12, Completion: 1, Total: 13}},
	"anthropic/stream-midstream-error.sse": {problem: "overloaded_error"},
	"anthropic/stream-early-error.sse":     {problem: "overloaded_error"},
}

// What comes out is sound for the stages behind: streamed or collected, it says what the provider said (R-098, STR-07, STR-15, TOOL-07).
func TestRecordedStreamsPassTheFilter(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures.Of("anthropic") {
		if f.Kind() != "sse" {
			continue
		}
		t.Run(path.Base(f.File), func(t *testing.T) {
			t.Parallel()
			want, ok := recorded[f.File]
			require.True(t, ok)
			out := translate(t, bytes.NewReader(f.Body))
			require.Equal(t, want, filter(t, out))
			if want.problem == "" {
				require.Equal(t, want, ofBody(collectBody(t, out)))
			}
		})
	}
}

// filter passes a stream through the filter. Whatever the filter lets through must have passed unchanged.
func filter(tb testing.TB, text string) answered {
	tb.Helper()
	out, problem, err := answertest.Relay(answertest.Chat(strings.NewReader(text)), answertest.Options{IncludeUsage: true})
	switch {
	case problem != nil:
		return answered{problem: gjson.GetBytes(problem, "error.type").Str}
	case err != nil:
		return answered{err: err}
	}
	require.Equal(tb, text, out, "the filter had something to repair")
	var a answered
	for e := range chunks(tb, out) {
		if u := gjson.GetBytes(e, "usage"); u.IsObject() {
			a.usage = openai.ParseUsage([]byte(u.Raw))
		}
		delta := gjson.GetBytes(e, "choices.0.delta")
		a.content += delta.Get("content").Str
		a.reasoning += delta.Get("reasoning_content").Str
		a.finish += gjson.GetBytes(e, "choices.0.finish_reason").Str
		for _, call := range delta.Get("tool_calls").Array() {
			if n := int(call.Get("index").Int()); n == len(a.args) {
				a.names, a.args = append(a.names, call.Get("function.name").Str), append(a.args, "")
			}
			a.args[call.Get("index").Int()] += call.Get("function.arguments").Str
		}
	}
	return a
}

// chunks gives the data of the events up to [DONE].
func chunks(tb testing.TB, text string) func(func([]byte) bool) {
	tb.Helper()
	return func(yield func([]byte) bool) {
		events := openai.NewReader(strings.NewReader(text), 0)
		for {
			e, err := events.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			require.NoError(tb, err)
			if e.Data == nil || openai.IsDone(e.Data) {
				continue
			}
			require.True(tb, json.Valid(e.Data), "%s", e.Data)
			if !yield(e.Data) {
				return
			}
		}
	}
}

// collectBody makes a JSON answer of a stream.
func collectBody(tb testing.TB, text string) []byte {
	tb.Helper()
	body, problem, err := answertest.Collect(answertest.Chat(strings.NewReader(text)), answertest.Options{})
	require.NoError(tb, err)
	require.Nil(tb, problem)
	return body
}

func ofBody(body []byte) answered {
	message := gjson.GetBytes(body, "choices.0.message")
	a := answered{
		content: message.Get("content").Str, reasoning: message.Get("reasoning_content").Str, finish: gjson.GetBytes(body, "choices.0.finish_reason").Str,
		usage: answertest.Usage(body),
	}
	for _, call := range message.Get("tool_calls").Array() {
		a.names, a.args = append(a.names, call.Get("function.name").Str), append(a.args, call.Get("function.arguments").Str)
	}
	return a
}

// A whole answer needs no repair either.
func TestRecordedMessagesPassTheFilter(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]answered{
		"anthropic/message-text.json":  {content: "The lamp is green.", finish: "stop", usage: openai.Usage{Prompt: 112, Completion: 8, Total: 120, Cached: 100}},
		"anthropic/message-tools.json": {content: "Let me look.", reasoning: "Need the time.", finish: "tool_calls", names: []string{"get_time"}, args: []string{`{"city":"Oslo"}`}, usage: openai.Usage{Prompt: 12, Completion: 30, Total: 42}},
	} {
		body := completion(fixtures.Get(file).Body)
		require.True(t, answertest.Answers(body))
		require.Equal(t, string(body), string(answertest.Completion(body, answertest.Options{Think: stream.ThinkSplit})))
		require.Equal(t, want, ofBody(body))
	}
}

// SSE-01, SSE-02, SSE-06: it makes no difference where the reads of the stream are cut, or how much the next reader takes at once.
func TestStreamsInPieces(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures.Of("anthropic") {
		if f.Kind() != "sse" {
			continue
		}
		t.Run(path.Base(f.File), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				want := translate(t, bytes.NewReader(f.Body))
				for i := range len(f.Body) {
					require.Equal(t, want, translate(t, io.MultiReader(bytes.NewReader(f.Body[:i]), bytes.NewReader(f.Body[i:]))))
				}
				require.Equal(t, want, translate(t, iotest.OneByteReader(bytes.NewReader(f.Body))))
				crlf := bytes.ReplaceAll(f.Body, []byte("\n"), []byte("\r\n"))
				require.Equal(t, want, translate(t, iotest.HalfReader(bytes.NewReader(crlf))))
			})
		})
	}
}

// A stream that is cut anywhere before its end is seen as cut by the next reader, and a cut never makes an answer out of a piece of one.
func TestCutStreams(t *testing.T) {
	t.Parallel()
	for file, want := range recorded {
		if want.problem != "" {
			continue
		}
		t.Run(path.Base(file), func(t *testing.T) {
			t.Parallel()
			body := fixtures.Get(file).Body
			for i := range bytes.Index(body, []byte(`"stop_reason":"`)) {
				out := translate(t, bytes.NewReader(body[:i]))
				require.NotContains(t, out, "[DONE]")
				got := filter(t, out)
				require.True(t, errors.Is(got.err, classify.ErrTruncated) || errors.Is(got.err, classify.ErrEmptyAnswer), "%d: %+v", i, got)
			}
			last := bytes.TrimRight(body, "\n") // SSE-10: the last event counts without a blank line
			require.Equal(t, want, filter(t, translate(t, bytes.NewReader(last))))
			require.NotContains(t, translate(t, bytes.NewReader(last[:len(last)-1])), "[DONE]")
		})
	}
}

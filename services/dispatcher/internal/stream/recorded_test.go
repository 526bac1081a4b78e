package stream_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/goldentest"
)

// routed is how the answer of a routed request passes: think tags split, one usage at the end, one name in all chunks (C-07, C-22).
var routed = options{Think: stream.ThinkSplit, IncludeUsage: true, Model: "auto"}

var (
	madeUp  = regexp.MustCompile(`"id":"(chatcmpl-|call_)[a-z2-7]{26}"`)
	created = regexp.MustCompile(`"created": *[0-9]+`)
)

// steady takes out of an output what is new each time. The moment is new only where the upstream gave none.
func steady(out string, in []byte) string {
	out = madeUp.ReplaceAllString(out, `"id":"${1}NEW"`)
	if !created.Match(in) {
		out = created.ReplaceAllString(out, `"created":NOW`)
	}
	return out
}

// ended says how a stream ended that has no good end.
func ended(problem []byte, err error) string {
	switch {
	case problem != nil:
		return fmt.Sprintf("problem: %s\n", problem)
	case err != nil:
		return fmt.Sprintf("error: %v\n", err)
	}
	return ""
}

// Every recorded stream of every provider, as a client gets it through a routed request. What the fixtures call a failure ends as one, and
// what they call sound is one for a strict client (R-036..R-041).
func TestEveryRecordedStream(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures.For(fixtures.Stream) {
		t.Run(f.File, func(t *testing.T) {
			t.Parallel()
			out, problem, err := pass(string(f.Body), routed)
			require.Equal(t, f.Class != "", problem != nil || err != nil, "%s %v", problem, err)
			if problem != nil {
				v := classify.Of(classify.Answer{Provider: f.Provider(), Status: f.Status, Header: f.Header, Body: problem, Event: true})
				require.Equal(t, f.Class, string(v.Class))
			}
			got := readStrictly(t, out)
			require.Equal(t, f.Class == "", got.done)
			require.NotContains(t, out, "<think>")
			require.NotContains(t, out, `"finish_reason":"error"`)
			goldentest.Compare(t, "recorded/"+f.File, []byte(steady(out, f.Body)+ended(problem, err)))
		})
	}
}

// The same with configured models: think tags off, no name, and a usage only for who asks. Those that need no repair keep every byte (C-22).
func TestEveryRecordedStreamAsItIs(t *testing.T) {
	t.Parallel()
	unchanged := 0
	for _, f := range fixtures.For(fixtures.Stream) {
		out, problem, err := pass(string(f.Body), options{})
		require.Equal(t, f.Class != "", problem != nil || err != nil, f.File)
		require.Empty(t, readStrictly(t, out).usage, f.File)
		if out == string(f.Body) {
			unchanged++
		}
	}
	require.Greater(t, unchanged, 5)
}

// Every recorded whole answer: as JSON, and as the stream that a client gets who asked for one.
func TestEveryRecordedCompletion(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures.For(fixtures.Completion) {
		t.Run(f.File, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, classify.Success, classify.Of(classify.Answer{Provider: f.Provider(), Status: f.Status, Header: f.Header, Body: f.Body}).Class)
			require.True(t, answertest.Answers(f.Body))
			body := answertest.Completion(f.Body, routed)
			goldentest.Compare(t, "recorded/"+f.File, []byte(steady(strings.TrimSpace(string(body))+"\n", f.Body)))
			out := synthesize(t, f.Body, routed)
			require.True(t, readStrictly(t, out).done)
			goldentest.Compare(t, "recorded/"+strings.TrimSuffix(f.File, ".json")+".sse", []byte(steady(out, f.Body)))
		})
	}
}

package ollama_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/goldentest"
)

// Each native sample of Ollama is translated, and ends as the fixtures say: in [DONE], or in an error of its class.
func TestEveryNativeSample(t *testing.T) {
	t.Parallel()
	n := 0
	for _, f := range fixtures.For(fixtures.Native) {
		if f.Provider() != "ollama" {
			continue
		}
		n++
		t.Run(f.File, func(t *testing.T) {
			t.Parallel()
			out := events(t, strings.NewReader(string(f.Body)))
			goldentest.Compare(t, strings.TrimSuffix(path.Base(f.File), ".ndjson")+".sse", []byte(out))
			require.Equal(t, f.Class == "", strings.HasSuffix(out, openai.Done))
			require.Equal(t, f.Class, problem(t, out))
		})
	}
	require.Positive(t, n)
}

// problem gives the class of the error in a stream, "" when it is sound for the stages behind.
func problem(tb testing.TB, text string) string {
	tb.Helper()
	filter := stream.NewFilter(stream.Options{IncludeUsage: true})
	r := openai.NewReader(strings.NewReader(text), 0)
	for {
		e, err := r.Next()
		if err != nil {
			break
		}
		if step := filter.Event(nil, e); step.Problem != nil {
			return string(classify.Of(classify.Answer{Provider: "ollama", Status: 200, Body: step.Problem, Event: true}).Class)
		}
	}
	_, err := filter.End(nil)
	require.NoError(tb, err)
	return ""
}

package ollama_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
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
	_, problem, err := answertest.Relay(answertest.Chat(strings.NewReader(text)), answertest.Options{IncludeUsage: true})
	require.NoError(tb, err)
	if problem == nil {
		return ""
	}
	return string(classify.Of(classify.Answer{Provider: "ollama", Status: 200, Body: problem, Event: true}).Class)
}

package intent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
)

// sentences are classified with the model if it is there.
func TestCheck(t *testing.T) {
	t.Parallel()
	o := newFakeOllama(t)
	cfg := settings()
	cfg.EmbeddingURL = o.URL
	c := newClassifierWith(t, cfg)
	c.limit = await.Limit
	all := []Sentence{{"who won the election yesterday", true}, {"explain closures", false}, {"please look up the tide", true}}
	done, unready, err := c.Check(t.Context(), all)
	require.NoError(t, err)
	require.NoError(t, unready)
	for i, want := range []string{WhyEmbedding, WhyNone, "regex:en:look-up"} {
		require.Equal(t, Classified{all[i], Verdict{all[i].Web, want}}, done[i])
	}
	o.answer(404)
	done, unready, err = newClassifierWith(t, cfg).Check(t.Context(), all)
	require.NoError(t, err)
	require.ErrorContains(t, unready, "404")
	require.Equal(t, WhyNone, done[0].Why)
}

// what is read are the sentences that are there; anything else is an error.
func FuzzReadSentences(f *testing.F) {
	for _, s := range []string{"web\ta b\nno\tc", "\ufeffweb\ta", "# x\n\n", "web a", "web\t", strings.Repeat("x", maxLine+1), "no\ta\tb\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ReadSentences(strings.NewReader(text))
		require.Equal(t, err == nil, len(all) > 0)
		for _, s := range all {
			require.NotEmpty(t, s.Text)
			require.Contains(t, text, s.Text)
		}
	})
}

package compress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// fact is a sentence of a conversation, and the words without which it is lost.
type fact struct {
	key, sentence string
	assistant     bool
}

// talk is a conversation with facts in it.
type talk struct {
	text  string
	facts []fact
}

// talks makes n long conversations in a language: the exchanges of testdata in some order, and in some of them a fact in the midst of what is said.
func talks(tb testing.TB, language string, n uint64) (list []talk) {
	tb.Helper()
	var facts []fact
	for line := range strings.Lines(read(tb, language+".facts.txt")) {
		key, sentence, found := strings.Cut(strings.TrimSpace(line), " :: ")
		require.True(tb, found, line)
		sentence, assistant := strings.CutPrefix(sentence, "A: ")
		require.Contains(tb, sentence, key)
		facts = append(facts, fact{key, sentence, assistant})
	}
	said := strings.Split(strings.TrimSpace(read(tb, language+".talk.txt")), "\n\n")
	for seed := range n {
		random := rand.New(rand.NewPCG(seed, 7))
		t := talk{}
		for _, f := range random.Perm(len(facts))[:16] {
			t.facts = append(t.facts, facts[f])
		}
		var b strings.Builder
		next := 0
		for _, at := range append(random.Perm(len(said)/2), random.Perm(len(said)/2)...) {
			question, answer := said[2*at], said[2*at+1]
			if next < len(t.facts) && random.IntN(2) == 0 {
				if f := t.facts[next]; f.assistant {
					answer = amid(random, answer, f.sentence)
				} else {
					question = amid(random, question, f.sentence)
				}
				next++
			}
			Say(&b, User, question)
			Say(&b, Assistant, answer)
		}
		t.text, t.facts = b.String(), t.facts[:next]
		list = append(list, t)
	}
	return list
}

func amid(random *rand.Rand, said, sentence string) string {
	var list []string
	for s := range sentences(said) {
		list = append(list, s)
	}
	at := random.IntN(len(list) + 1)
	return strings.Join(append(append(append([]string{}, list[:at]...), sentence), list[at:]...), " ")
}

func read(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile("testdata/" + name)
	require.NoError(tb, err)
	return string(data)
}

// ways are Extractive and what it is measured against. A compressor that is worth its name keeps more than those.
var ways = []struct {
	name     string
	compress func(text string, target int) string
}{
	{"extractive", func(text string, target int) string {
		short, _ := Extractive{}.Compress(context.Background(), text, target) // never fails
		return short
	}},
	{"last-tokens", func(text string, target int) string { return suffix(text, target*charactersPerToken) }},
	{"lead-sentences", leadSentences},
}

// leadSentences keeps the first sentence of each passage, from the newest on, and of what is left of the space the next ones.
func leadSentences(text string, target int) string {
	var b strings.Builder
	space := target * charactersPerToken
	units := split(text)
	for _, u := range slices.Backward(units) {
		if n := utf8.RuneCountInString(u.text) + 1; u.lead && n <= space {
			b.WriteString(u.text + "\n")
			space -= n
		}
	}
	return b.String()
}

func recall(t talk, short string) float64 {
	n := 0
	for _, f := range t.facts {
		if strings.Contains(short, f.key) {
			n++
		}
	}
	return float64(n) / float64(len(t.facts))
}

// BenchmarkRecall measures which part of the facts in long conversations summaries of 800 and of 400 tokens keep, and what is left when the one of 800 is
// folded into the summary of a further conversation.
func BenchmarkRecall(b *testing.B) {
	for _, language := range []string{"en", "ko"} {
		list := talks(b, language, 6)
		for _, w := range ways {
			b.Run(fmt.Sprintf("%s/%s", language, w.name), func(b *testing.B) {
				var r recalls
				for b.Loop() {
					r = measure(list, w.compress)
				}
				b.ReportMetric(r.at800, "recall-800")
				b.ReportMetric(r.at400, "recall-400")
				b.ReportMetric(r.folded, "recall-folded")
				b.ReportMetric(float64(r.tokens), "tokens-in")
			})
		}
	}
}

type recalls struct {
	at800, at400, folded float64
	tokens               int
}

func measure(list []talk, compress func(string, int) string) (r recalls) {
	n := len(list)
	for i, t := range list {
		short := compress(t.text, 800)
		r.at800 += recall(t, short) / float64(n)
		r.at400 += recall(t, compress(t.text, 400)) / float64(n)
		r.folded += recall(t, compress(short+"\n\n"+list[(i+1)%n].text, 800)) / float64(n)
		r.tokens += Tokens(t.text) / n
	}
	return r
}

// of the facts in a long conversation nearly all are in its summary, and most survive the folding into the next one.
func TestFactsSurvive(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "ko"} {
		list := talks(t, language, 2)
		best := measure(list, ways[0].compress)
		require.Greater(t, best.at800, 0.9, language)
		require.Greater(t, best.at400, 0.75, language)
		require.Greater(t, best.folded, 0.85, language)
		for _, w := range ways[1:] {
			plain := measure(list, w.compress)
			require.Greater(t, best.at800, 1.5*plain.at800, "%s: %s", language, w.name)
			require.Greater(t, best.folded, 1.5*plain.folded, "%s: %s", language, w.name)
		}
	}
}

package intent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/config"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/output"
	"hydrallm/shared/testkit/startstoptest"
)

// keeper is an enricher as far as keywords go.
type keeper struct {
	*Keywords

	handlers query.Handlers
	log      *output.Buffer
}

func newKeeper(t *testing.T, b *bus.Bus, cfg config.Intent) *keeper {
	t.Helper()
	log := &output.Buffer{}
	k, err := NewKeywords(b, cfg, newClassifier(t), slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	require.NoError(t, k.Start(t.Context()))
	t.Cleanup(func() { startstoptest.Stop(t, k) })
	h := query.Handlers{}
	k.Handle(h)
	return &keeper{k, h, log}
}

// ask asks what another service would ask.
func ask[Q, A any](t *testing.T, k *keeper, op query.Op[Q, A], question Q) (answer A, err error) {
	t.Helper()
	data, err := json.Marshal(question)
	require.NoError(t, err)
	data, err = k.handlers[op.Name](t.Context(), data)
	if err == nil {
		require.NoError(t, json.Unmarshal(data, &answer))
	}
	return answer, err
}

func (k *keeper) give(t *testing.T, lang string, keywords ...string) []string {
	t.Helper()
	answer, err := ask(t, k, query.AddKeywords, query.NewKeywords{Lang: lang, Keywords: keywords})
	require.NoError(t, err)
	require.Equal(t, lang, answer.Lang)
	require.Equal(t, query.Success, answer.Status)
	require.NotNil(t, answer.Added)
	return answer.Added
}

func (k *keeper) all(t *testing.T) query.Keywords {
	t.Helper()
	answer, err := ask(t, k, query.GetKeywords, query.None{})
	require.NoError(t, err)
	require.NotNil(t, answer.Korean)
	require.NotNil(t, answer.English)
	return answer
}

//
func TestAddKeywords(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, bustest.Start(t), settings())
	require.Equal(t, query.Keywords{Korean: []string{}, English: []string{}}, k.all(t))
	y, z := strings.Repeat("y", 61), strings.Repeat("물", 60)
	added := k.give(t, "en", "  ferry Tide ", "ferry tide", "FERRY TIDE", "x", y, "", "ok", "a\x00b", "ｆｅｒｒｙ tide")
	require.Equal(t, []string{"ferry Tide", "ok"}, added)
	require.Empty(t, k.give(t, "en", "Ferry Tide", "OK"))
	require.Equal(t, []string{"물때", z}, k.give(t, "ko", "\u1106\u116e\u11af\u1104\u1162", z, z+"물"), "composed")
	require.Equal(t, query.Keywords{Korean: []string{"물때", z}, English: []string{"ferry Tide", "ok"}}, k.all(t))

	var many []string
	for i := range 250 {
		many = append(many, fmt.Sprintf("word %d", i))
	}
	require.Equal(t, many[:150], k.give(t, "en", many[:150]...))
	require.Equal(t, many[150:], k.give(t, "en", many[100:]...))
	require.Equal(t, many[50:], k.all(t).English, "the oldest go first")
	for i := range 250 {
		many[i] = "more " + many[i]
	}
	require.Equal(t, many[50:], k.give(t, "en", many...), "what has no room was not added")

	_, err := ask(t, k, query.AddKeywords, query.NewKeywords{Lang: "fr", Keywords: []string{"marée"}})
	require.Equal(t, fault.Invalid, fault.From(err).Kind)
	startstoptest.Stop(t, k)
	_, err = ask(t, k, query.GetKeywords, query.None{})
	require.Equal(t, fault.Unavailable, fault.From(err).Kind)
}

// what one enricher is told reaches all others, and those that start later; nobody's keyword is lost.
func TestKeywordsAreCommon(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	first := newKeeper(t, bustest.Connect(t, server), settings())
	second := newKeeper(t, bustest.Connect(t, server), settings())
	first.give(t, "en", "kelp index")
	const question = "how is the Kelp Index doing"
	for _, k := range []*keeper{first, second} {
		await.True(t, func() bool { return k.classifier.NeedsWeb(t.Context(), question).Web }, "the keyword")
	}
	var wg sync.WaitGroup
	errs := make([]error, 12)
	for n := range errs {
		wg.Go(func() {
			k := []*keeper{first, second}[n%2]
			_, errs[n] = k.add(t.Context(), "ko", []string{fmt.Sprintf("물때 %d", n/2), fmt.Sprintf("표 %d", n)})
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Len(t, second.all(t).Korean, 18)
	third := newKeeper(t, bustest.Connect(t, server), settings())
	require.True(t, third.classifier.NeedsWeb(t.Context(), question).Web, "R-270: known from the start")
}

// files say with what the bucket begins, and nothing after that; a broken one is kept and ignored.
func TestKeywordFiles(t *testing.T) {
	t.Parallel()
	cfg := settings()
	cfg.KeywordsDir = t.TempDir()
	write := func(lang, text string) string {
		name := filepath.Join(cfg.KeywordsDir, "web_keywords."+lang+".json")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	write("en", "\ufeff"+`["Kelp Index", "kelp index", "x"]`)
	broken := write("ko", `["물때", 5]`)
	server := natstest.Start(t)
	k := newKeeper(t, bustest.Connect(t, server), cfg)
	require.Equal(t, query.Keywords{Korean: []string{}, English: []string{"Kelp Index"}}, k.all(t))
	require.True(t, k.classifier.NeedsWeb(t.Context(), "how is the kelp index doing").Web)
	require.Contains(t, k.log.String(), "web_keywords.ko.json")
	data, err := os.ReadFile(broken)
	require.NoError(t, err)
	require.Equal(t, `["물때", 5]`, string(data))

	k.give(t, "en", "tide table")
	write("en", `["other"]`)
	k = newKeeper(t, bustest.Connect(t, server), cfg)
	require.Equal(t, []string{"Kelp Index", "tide table"}, k.all(t).English, "the bucket counts")
}

// a bucket that somebody else wrote to harms nothing.
func TestKeywordsThatCanNotBeRead(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	k := newKeeper(t, b, settings())
	k.give(t, "en", "kelp index")
	await.True(t, func() bool { return k.classifier.NeedsWeb(t.Context(), "the kelp index of today").Web }, "the keyword")
	bucket, err := b.Bucket(t.Context(), subject.KeywordsBucket)
	require.NoError(t, err)
	_, err = bucket.Put(t.Context(), "en", []byte("{"))
	require.NoError(t, err)
	await.True(t, func() bool { return strings.Contains(k.log.String(), "can't be read") }, "the warning")
	require.True(t, k.classifier.NeedsWeb(t.Context(), "the kelp index of today").Web, "what was known stays")
	require.Empty(t, k.all(t).English)
	require.Equal(t, []string{"tide table"}, k.give(t, "en", "tide table"))
	require.NoError(t, bucket.Delete(t.Context(), "en", 0))
	await.True(t, func() bool { return !k.classifier.NeedsWeb(t.Context(), "the tide table of today").Web }, "the removal")
}

//
func TestLearn(t *testing.T) {
	t.Parallel()
	const english, korean = "what is the current tide at Busan", "부산 현재 물때는 어때? 최신 조석표 있어"
	tests := []struct {
		name, model, content string
		status               int
		question             string
		want                 []string
	}{
		{"without a model", "", "", 200, english, []string{"current tide"}},
		{"without a model, Korean", "", "", 200, korean, []string{"현재 물때", "최신 조석표"}},
		{"no signal", "", "", 200, "explain how tides work", []string{}},
		{"a signal at the end", "", "", 200, "the tide today", []string{}},
		{"a signal before a filler", "", "", 200, "what is the price of it today or now?", []string{}},
		{"two at most", "", "", 200, "current tide, latest storm, recent flood", []string{"current tide", "latest storm"}},
		{"words apart are no phrase", "", "", 200, "current, tide", []string{}},
		{"by a model", "m", `["tide at Busan"]`, 200, english, []string{"tide at Busan"}},
		{"with words around it", "m", "Sure!\n```json\n[\"current tide\"]\n```", 200, english, []string{"current tide"}},
		{"what is not in the question", "m", `["weather in Seoul", "tide at busan"]`, 200, english, []string{"tide at busan"}},
		{"three at most", "m", `["what is", "the current", "tide", "Busan"]`, 200, english, []string{"what is", "the current", "tide"}},
		{"several languages", "m", `["KTX 시간", "KTX now"]`, 200, "KTX 시간 알려줘 KTX now", []string{"KTX now", "KTX 시간"}},
		{"no array", "m", "the tide", 200, english, []string{"current tide"}},
		{"no texts", "m", "[1, 2]", 200, english, []string{"current tide"}},
		{"nothing of use", "m", `["x", ""]`, 200, english, []string{"current tide"}},
		{"a model that fails", "m", "", 500, english, []string{"current tide"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newFakeOllama(t)
			o.chat = tt.content
			o.answer(tt.status)
			cfg := settings()
			cfg.EmbeddingURL, cfg.KeywordModel = o.URL, tt.model
			k := newKeeper(t, bustest.Start(t), cfg)
			answer, err := ask(t, k, query.LearnKeywords, query.Missed{Query: tt.question})
			require.NoError(t, err)
			require.Equal(t, query.Learned{Status: query.Success, Query: tt.question, Added: tt.want}, answer)
			all := k.all(t)
			require.ElementsMatch(t, tt.want, slices.Concat(all.English, all.Korean))
			if len(tt.want) > 0 {
				await.True(t, func() bool { return k.classifier.NeedsWeb(t.Context(), tt.question).Web }, "what was learned")
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			if tt.model == "" {
				require.Empty(t, o.asked)
				return
			}
			require.Equal(t, "/api/chat", o.asked[0]["path"])
			require.Equal(t, map[string]any{"temperature": 0.0}, o.asked[0]["options"])
			require.Equal(t, false, o.asked[0]["stream"])
		})
	}
}

// No file and no answer of a model harms the readers.
func FuzzKeywords(f *testing.F) {
	for _, s := range []string{`["a b"]`, `[1]`, "", "null", `["물때"]`, "```[\"x y\"]```", "]["} {
		f.Add([]byte(s), "current tide 물때 now")
	}
	l, err := newLearner(settings(), slog.New(slog.DiscardHandler))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte, question string) {
		list, err := readKeywords(data)
		if err == nil {
			all, added := appendKeywords(nil, list)
			require.LessOrEqual(t, len(all), maxKeywords)
			require.Equal(t, all, added)
			_, again := appendKeywords(all, all)
			require.Empty(t, again)
		}
		_, _ = readPhrases(string(data))
		for lang, phrases := range l.phrases(context.Background(), question) {
			require.Contains(t, languages, lang)
			require.LessOrEqual(t, len(phrases), maxGuessed)
			for _, p := range phrases {
				_, ok := cleanKeyword(p)
				require.True(t, ok, p)
				require.Contains(t, fold(question), fold(p))
			}
		}
	})
}

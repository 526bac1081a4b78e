package intent

import (
	"encoding/json"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/output"
	"hydrallm/shared/testkit/startstoptest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func readLabelled(tb testing.TB, name string) []Sentence {
	tb.Helper()
	file, err := os.Open("testdata/" + name)
	require.NoError(tb, err)
	defer file.Close() //nolint:errcheck // nothing was written
	all, err := ReadSentences(file)
	require.NoError(tb, err)
	return all
}

func settings() config.Intent { return config.Intent{EmbeddingModel: "bge-m3:latest", Threshold: 0.58} }

// newClassifier makes one without embeddings.
func newClassifier(tb testing.TB) *Classifier {
	tb.Helper()
	return newClassifierWith(tb, settings())
}

func newClassifierWith(tb testing.TB, cfg config.Intent) *Classifier {
	tb.Helper()
	c, err := New(cfg, slog.New(slog.DiscardHandler))
	require.NoError(tb, err)
	return c
}

// fakeOllama answers like the server of an embedding model. Its vectors are synthetic: texts of one kind point roughly in one direction, and each has
// a part of its own. They test what is made of vectors, and tell nothing of a model.
type fakeOllama struct {
	*httptest.Server

	mu     sync.Mutex
	web    map[string]bool
	status int    // other than 200: what it answers
	chat   string // the content of its chat answers
	asked  []map[string]any
}

func newFakeOllama(t *testing.T) *fakeOllama {
	t.Helper()
	o := &fakeOllama{web: map[string]bool{}, status: http.StatusOK}
	known, err := builtInExamples()
	require.NoError(t, err)
	for _, lang := range known {
		for _, text := range lang.Web {
			o.web[text] = true
		}
	}
	for _, one := range readLabelled(t, "smoke.tsv") {
		o.web[fold(one.Text)] = one.Web
	}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

func (o *fakeOllama) answer(status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status = status
}

// questions counts the calls for vectors of n texts.
func (o *fakeOllama) questions(n int) (count int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range o.asked {
		if input, ok := q["input"].([]any); ok && len(input) == n {
			count++
		}
	}
	return count
}

func (o *fakeOllama) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var q map[string]any
	_ = json.NewDecoder(r.Body).Decode(&q)
	q["path"] = r.URL.Path
	o.asked = append(o.asked, q)
	w.WriteHeader(o.status)
	if r.URL.Path == "/api/chat" {
		_ = json.NewEncoder(w).Encode(map[string]any{"message": map[string]any{"role": "assistant", "content": o.chat}})
		return
	}
	var vectors []vector
	for _, text := range q["input"].([]any) {
		vectors = append(vectors, o.vectorOf(text.(string)))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"model": q["model"], "embeddings": vectors})
}

func (o *fakeOllama) vectorOf(text string) vector {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	random := rand.New(rand.NewPCG(h.Sum64(), 1)) // the same vector for the same text
	v := make(vector, 64)
	for i := range v {
		v[i] = float32(random.NormFloat64() / 16) // all together as long as one half
	}
	if o.web[text] {
		v[0]++
	} else {
		v[1]++
	}
	return v
}

// start makes a classifier with embeddings.
func (o *fakeOllama) start(t *testing.T) (*Classifier, *output.Buffer) {
	t.Helper()
	cfg := settings()
	cfg.EmbeddingURL = o.URL
	log := &output.Buffer{}
	c, err := New(cfg, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	c.limit = await.Limit // however slow the machine is
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() { startstoptest.Stop(t, c) })
	return c, log
}

package intent

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/output"
)

// the last stage, from the call to the verdict. The vectors are synthetic (see fakeOllama).
func TestSmokeSet(t *testing.T) {
	t.Parallel()
	o := newFakeOllama(t)
	c, log := o.start(t)
	await.True(t, func() bool { return c.examples.Load() != nil }, "the examples")
	all := readLabelled(t, "smoke.tsv")
	require.Len(t, all, 24)
	for _, one := range all {
		v := c.NeedsWeb(t.Context(), one.Text)
		require.Equal(t, one.Web, v.Web, "%s: %s", one.Text, v.Why)
		require.Equal(t, one.Web, v.Why == WhyEmbedding, "%s: %s", one.Text, v.Why)
	}
	require.Contains(t, log.String(), "can be had")
	require.Equal(t, len(all), o.questions(1))
	for _, one := range all {
		require.Equal(t, one.Web, c.NeedsWeb(t.Context(), one.Text).Web)
	}
	require.Equal(t, len(all), o.questions(1), "R-737: a text is embedded once")
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range o.asked {
		require.Equal(t, "/api/embed", q["path"])
		require.Equal(t, "bge-m3:latest", q["model"])
		require.LessOrEqual(t, len(q["input"].([]any)), 64)
	}
}

//
func TestLikeness(t *testing.T) {
	t.Parallel()
	unit := func(degrees float64) vector {
		return vector{float32(math.Cos(degrees * math.Pi / 180)), float32(math.Sin(degrees * math.Pi / 180))}
	}
	l := func(threshold float64, web, other []vector) *likeness {
		return &likeness{web: web, meanWeb: mean(web), meanOther: mean(other), threshold: threshold}
	}
	tests := []struct {
		name  string
		l     *likeness
		query vector
		want  bool
	}{
		{"near enough", l(0.58, []vector{unit(0)}, []vector{unit(180)}), unit(54), true},   // cos 54 = 0.588
		{"too far away", l(0.58, []vector{unit(0)}, []vector{unit(180)}), unit(55), false}, // cos 55 = 0.574
		{"one near example is enough", l(0.9, []vector{unit(0), unit(80)}, []vector{unit(180)}), unit(10), true},
		{"negative ones are nearer on average", l(0.58, []vector{unit(0), unit(120)}, []vector{unit(20)}), unit(10), false},
		{"a threshold of 0 still compares", l(0, []vector{unit(0)}, []vector{unit(90)}), unit(60), false},
		{"another dimension", l(0, []vector{unit(0)}, []vector{unit(180)}), vector{1, 0, 0}, false},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, tt.l.needsWeb(tt.query), tt.name)
	}
}

// while the model fails the other stages work, nobody waits for it, and it is back by itself.
func TestModelFailsAndReturns(t *testing.T) {
	t.Parallel()
	o := newFakeOllama(t)
	o.answer(http.StatusNotFound) // it has no such model yet
	c, log := o.start(t)
	await.True(t, func() bool { return strings.Contains(log.String(), "no embeddings") }, "the first try")
	require.Equal(t, Verdict{false, WhyNone}, c.NeedsWeb(t.Context(), "who won the election yesterday"))
	require.Equal(t, "regex:en:look-up", c.NeedsWeb(t.Context(), "please look up the tide").Why)
	require.Equal(t, 0, o.questions(1), "a model that is not ready is not asked")
	o.answer(http.StatusOK)
	await.True(t, func() bool { return c.NeedsWeb(t.Context(), "who won the election yesterday").Web }, "the model")
	o.answer(http.StatusInternalServerError)
	require.Equal(t, Verdict{false, WhyNone}, c.NeedsWeb(t.Context(), "is the subway strike over yet"), "a failure is no verdict")
	o.answer(http.StatusOK)
	await.True(t, func() bool { return c.NeedsWeb(t.Context(), "is the subway strike over yet").Web }, "the model")
}

// transport is a server without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// tries are far apart when the model is away for long, and no request waits longer than the limit for one that hangs.
func TestTimeOfTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		var hang, fail atomic.Bool
		fail.Store(true)
		cfg := settings()
		cfg.EmbeddingURL = "http://ollama.example/v1/"
		var log output.Buffer
		c, err := New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		c.ollama.client.Transport = transport(func(r *http.Request) (*http.Response, error) {
			calls.Add(1)
			if r.URL.String() != "http://ollama.example/api/embed" || fail.Load() {
				return nil, io.ErrUnexpectedEOF
			}
			if hang.Load() {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			var q struct{ Input []string }
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
				return nil, err
			}
			vectors := make([]vector, len(q.Input))
			for i := range vectors {
				vectors[i] = vector{1, float32(i)}
			}
			body, err := json.Marshal(map[string]any{"embeddings": vectors})
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, err
		})
		require.NoError(t, c.Start(t.Context()))
		time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
		require.InDelta(t, 65, calls.Load(), 2, "about once a minute")
		require.Equal(t, 1, strings.Count(log.String(), "no embeddings"), "an outage is told once")

		fail.Store(false)
		time.Sleep(lastRetry) //nolint:forbidigo // in a bubble
		require.NotNil(t, c.examples.Load())
		hang.Store(true)
		begun := time.Now()
		require.Equal(t, WhyNone, c.NeedsWeb(t.Context(), "who won the election").Why)
		require.Equal(t, queryLimit, time.Since(begun))
		begun = time.Now()
		require.Equal(t, WhyNone, c.NeedsWeb(t.Context(), "who won the election").Why)
		require.Zero(t, time.Since(begun), "the next one does not wait")
		hang.Store(false)
		time.Sleep(examplesLimit + lastRetry) //nolint:forbidigo // in a bubble
		require.NotNil(t, c.examples.Load(), "it is back")

		hang.Store(true)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		require.Equal(t, WhyNone, c.NeedsWeb(gone, "who won the election").Why)
		require.NotNil(t, c.examples.Load(), "a client that left is no failure of the model")
		require.NoError(t, c.Stop(t.Context()))
	})
}

// what a server answers that is no Ollama harms nothing.
func TestBadVectors(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no JSON": "<html>", "none": `{}`, "too few": `{"embeddings":[[1,0]]}`, "empty ones": `{"embeddings":[[],[]]}`, "zeros": `{"embeddings":[[0,0],[1,0]]}`,
		"several lengths": `{"embeddings":[[1,0],[1]]}`, "texts": `{"embeddings":[["1"],["2"]]}`, "too large": `{"embeddings":[[1e300],[1]]}`,
		"longer than the limit": `{"embeddings":[[1],[1]],"x":"` + strings.Repeat("x", maxAnswer) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOllama("http://ollama.example")
			o.client.Transport = transport(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}, nil
			})
			_, err := o.embed(t.Context(), "m", []string{"a", "b"})
			require.Error(t, err)
		})
	}
}

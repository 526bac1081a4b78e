package intent

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
)

// Limits of asking the embedding model.
const (
	queryLimit    = 2 * time.Second // the longest that a request waits for it
	examplesLimit = time.Minute     // for the examples: the server may load the model first
	firstRetry    = time.Second
	lastRetry     = time.Minute
	maxQueries    = 8       // at the same time
	maxRemembered = 1024    // texts
	embedded      = 1 << 10 // bytes of the begin and of the end of a text: a model sees less of what is asked the longer the text is
)

// vector is an embedding.
type vector []float32

// normalize gives a vector the length 1, and false when it has none or is no vector of numbers.
func (v vector) normalize() bool {
	length := math.Sqrt(v.dot(v))
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return false
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return true
}

// dot is the cosine similarity of vectors of length 1.
func (v vector) dot(w vector) (sum float64) {
	for i := range v {
		sum += float64(v[i]) * float64(w[i])
	}
	return sum
}

// likeness compares with examples.
type likeness struct {
	web       []vector
	meanWeb   vector
	meanOther vector
	threshold float64
}

// needsWeb tells whether the nearest positive example is near enough, and positive ones are nearer than negative ones on average.
func (l *likeness) needsWeb(query vector) bool {
	if len(query) != len(l.meanWeb) {
		return false
	}
	nearest := -1.0
	for _, v := range l.web {
		nearest = max(nearest, query.dot(v))
	}
	return nearest >= l.threshold && query.dot(l.meanWeb) > query.dot(l.meanOther)
}

// mean gives the mean of vectors: its product with another one is the mean of their products.
func mean(all []vector) vector {
	sum := make(vector, len(all[0]))
	for _, v := range all {
		for i := range v {
			sum[i] += v[i] / float32(len(all))
		}
	}
	return sum
}

// embeddings is the last stage. It is a lifecycle.Service: while it runs it gets the examples from the model, again and again until that works.
type embeddings struct {
	*lifecycle.Switch[tries]

	ollama     *ollama
	model      string
	threshold  float64
	limit      time.Duration // queryLimit
	web, other []string      // examples
	log        *slog.Logger
	examples   atomic.Pointer[likeness] // nil: not ready
	broken     chan struct{}            // the model failed
	free       chan struct{}            // has room for the queries that may run
	remembered *lru.Cache[string, bool] // verdicts by folded text: a conversation asks for the same one again
}

// tries is what exists between Start and Stop.
type tries struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newEmbeddings(cfg config.Intent, known map[string]examples, log *slog.Logger) *embeddings {
	e := &embeddings{
		ollama: newOllama(cfg.EmbeddingURL), model: cfg.EmbeddingModel, threshold: cfg.Threshold, limit: queryLimit, log: log,
		broken: make(chan struct{}, 1), free: make(chan struct{}, maxQueries),
	}
	for _, lang := range languages {
		e.web, e.other = append(e.web, known[lang].Web...), append(e.other, known[lang].Other...)
	}
	e.remembered, _ = lru.New[string, bool](maxRemembered) // it fails for a size below 1 only
	e.Switch = lifecycle.NewSwitch(e.begin, e.end)
	return e
}

func (e *embeddings) begin(ctx context.Context, t *tries) error {
	if e.model == "" || e.ollama.url == "" {
		return nil
	}
	ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.done.Go(func() { e.keepReady(ctx) })
	return nil
}

func (e *embeddings) end(_ context.Context, t *tries) error {
	if t.cancel != nil {
		t.cancel()
	}
	t.done.Wait()
	e.examples.Store(nil)
	e.ollama.client.CloseIdleConnections()
	return nil
}

// keepReady gets the examples, and gets them again when the model failed.
func (e *embeddings) keepReady(ctx context.Context) {
	pause, told := firstRetry, false
	for ctx.Err() == nil {
		err := e.prepare(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			e.log.Info("embeddings for questions that need the web can be had", slog.String("model", e.model))
			pause, told = firstRetry, false
			select {
			case <-e.broken:
			case <-ctx.Done():
				return
			}
		case !told:
			told = true // once an outage
			e.log.Info("no embeddings for questions that need the web; trying again", slog.String("model", e.model), slog.Any("error", err))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, lastRetry)
	}
}

func (e *embeddings) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, examplesLimit)
	defer cancel()
	all, err := e.ollama.embed(ctx, e.model, slices.Concat(e.web, e.other))
	if err != nil {
		return err
	}
	web, other := all[:len(e.web)], all[len(e.web):]
	select { // a failure from before counts no more
	case <-e.broken:
	default:
	}
	e.examples.Store(&likeness{web: web, meanWeb: mean(web), meanOther: mean(other), threshold: e.threshold})
	return nil
}

// isLikeWeb compares a folded text with the examples. Without a model, or when it takes too long, it is false.
func (e *embeddings) isLikeWeb(ctx context.Context, text string) bool {
	examples := e.examples.Load()
	if examples == nil {
		return false
	}
	text = bounded(text, embedded)
	if web, known := e.remembered.Get(text); known {
		return web
	}
	limited, cancel := context.WithTimeout(ctx, e.limit)
	defer cancel()
	select {
	case e.free <- struct{}{}:
		defer func() { <-e.free }()
	case <-limited.Done():
		return false
	}
	vectors, err := e.ollama.embed(limited, e.model, []string{text})
	switch {
	case err == nil:
		web := examples.needsWeb(vectors[0])
		e.remembered.Add(text, web)
		return web
	case ctx.Err() == nil:
		e.fail(err)
	}
	return false
}

// fail has the examples be got again, before anybody else waits for the model.
func (e *embeddings) fail(err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it takes too long")
	}
	if e.examples.Swap(nil) != nil {
		e.log.Warn("the embedding model fails", slog.String("model", e.model), slog.Any("error", err))
		select {
		case e.broken <- struct{}{}:
		default:
		}
	}
}

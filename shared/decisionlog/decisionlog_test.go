package decisionlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/topology"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	_     Publisher = (*bus.Bus)(nil)
	quiet           = slog.New(slog.DiscardHandler)
)

func decided(id string) *contract.Request {
	return &contract.Request{
		ID: id, SessionID: "s1", Model: "auto",
		Decision: &contract.Decision{Provider: "groq", Model: "m", Reason: contract.ReasonTokenCount, Tokens: 12, Search: true},
	}
}

// the facts that the session writer stores: one line for each decision, many in a message. A request that is delivered twice has
// one id.
func TestFacts(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	var lost atomic.Int64
	begun := time.Now()
	j := New(b, quiet, func() { lost.Add(1) })
	for range 2 {
		j.Note(decided("r1"))
	}
	r := decided("r2")
	r.Model, r.Decision = "", &contract.Decision{Agent: "ollama", Reason: contract.ReasonKeyAvailability, PinProvider: true, Needs: contract.FeatureImages}
	j.Note(r)
	r = decided("r3")
	configured := contract.ConfiguredModel("my\x1bgpt")
	r.Model, r.SessionID, r.Decision = configured.Model, "", &configured
	j.Note(r)
	for i := range batchCount {
		j.Note(decided(strconv.Itoa(i)))
	}
	j.Stop(t.Context())
	j.Note(decided("too late"))
	require.Equal(t, int64(1), lost.Load())

	var mu sync.Mutex
	got := map[string]contract.Log{}
	lines, messages := 0, 0
	facts, err := b.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 10, MaxWait: time.Millisecond},
		func(_ context.Context, facts []bus.Fact) error {
			mu.Lock()
			defer mu.Unlock()
			for _, f := range facts {
				messages++
				for line := range bytes.Lines(f.Data) {
					var l contract.Log
					if err := json.Unmarshal(line, &l); err != nil || f.Subject != "hydra.v1.log.routing" {
						t.Error(f.Subject, err)
					}
					got[l.ID] = l
					lines++
				}
			}
			return nil
		})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, facts.Stop(context.Background())) })
	await.True(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) == 3+batchCount
	})
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 4+batchCount, lines)
	require.Less(t, messages, lines/2)
	l := got["r1.routing"]
	require.Equal(t, "auto goes to groq/m: TOKEN_OPTIMIZED, about 12 tokens", l.Message)
	require.Equal(t, [...]string{"INFO", "ROUTING", "r1"}, [...]string{l.Level, l.Category, l.RequestID})
	require.WithinRange(t, l.At, begun, time.Now())
	require.JSONEq(t, `{"session_id":"s1","model":"auto","provider":"groq","target_model":"m","reason":"token_count","search":true,"tokens":12}`, string(l.Metadata))
	l = got["r2.routing"]
	require.Equal(t, "a request without a model goes to ollama: KEY_AVAILABILITY, about 0 tokens", l.Message)
	require.JSONEq(t, `{"session_id":"s1","model":"","agent":"ollama","reason":"key_availability","strict":true,"images":true,"tokens":0}`, string(l.Metadata))
	l = got["r3.routing"]
	require.Equal(t, "my\uFFFDgpt goes to the upstreams of my\uFFFDgpt: USER_HINT, about 0 tokens", l.Message)
	require.JSONEq(t, `{"model":"my\ufffdgpt","target_model":"my\ufffdgpt","reason":"model_hint","configured":true,"strict":true,"tokens":0}`, string(l.Metadata))
}

// slow is a server that takes nothing until it is told to.
type slow struct {
	release chan struct{}
	taken   atomic.Int64
}

func (s *slow) PublishFact(ctx context.Context, subj, _ string, data []byte) error {
	if subj != subject.Log(category) {
		return errors.New("wrong subject")
	}
	select {
	case <-s.release:
		s.taken.Add(int64(bytes.Count(data, []byte{'\n'})))
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Noting never waits, whatever the server does.
func TestFullQueueLoses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		s := &slow{release: make(chan struct{})}
		j := New(s, quiet, func() { lost.Add(1) })
		for i := range batchCount {
			j.Note(decided(strconv.Itoa(i)))
		}
		synctest.Wait() // the writer holds a batch
		for i := range queueSize + 7 {
			j.Note(decided(strconv.Itoa(i)))
		}
		require.Equal(t, int64(7), lost.Load())
		close(s.release)
		j.Stop(t.Context())
		require.Equal(t, int64(queueSize+batchCount), s.taken.Load())
		require.Equal(t, int64(7), lost.Load())
		j.Stop(t.Context())
	})
}

// A decision does not wait for others for long.
func TestDecisionsAreStoredSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{release: make(chan struct{})}
		close(s.release)
		j := New(s, quiet, func() {})
		defer j.Stop(t.Context())
		j.Note(decided("r"))
		<-time.After(batchWait)
		synctest.Wait()
		require.Equal(t, int64(1), s.taken.Load())
	})
}

// Decisions wait for a server that does not answer, however long, but a stop is not held up for longer than its context, and never for long.
func TestServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for limit, want := range map[time.Duration]time.Duration{2 * time.Second: 2 * time.Second, time.Hour: stopLimit} {
		t.Run(limit.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var lost atomic.Int64
				j := New(&slow{}, quiet, func() { lost.Add(1) })
				for i := range 2 * batchCount {
					j.Note(decided(strconv.Itoa(i)))
				}
				<-time.After(24 * time.Hour)
				require.Zero(t, lost.Load())
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				j.Stop(ctx)
				require.Equal(t, want, time.Since(begin))
				require.Equal(t, int64(2*batchCount), lost.Load())
			})
		})
	}
}

func TestStopOfNothing(t *testing.T) {
	t.Parallel()
	var j *Log
	j.Stop(t.Context())
}

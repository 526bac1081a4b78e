package decisionlog

import (
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
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	_     Publisher = (*bus.Bus)(nil)
	quiet           = slog.New(slog.DiscardHandler)
)

func entry(id string) Entry {
	return Entry{
		RequestID: id, SessionID: "s1", Model: "auto", At: time.Unix(1700000000, 5).UTC(),
		Decision: contract.Decision{Provider: "groq", Model: "m", Reason: contract.ReasonTokenCount, Tokens: 12, Search: true},
	}
}

// the fact that the session writer stores; a request that is delivered twice has one.
func TestFacts(t *testing.T) {
	t.Parallel()
	b, err := bus.Connect(t.Context(), bus.Config{InProcess: natstest.Start(t), Name: t.Name(), Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })
	var lost atomic.Int64
	j := New(b, quiet, func() { lost.Add(1) })
	for range 2 {
		j.Note(entry("r1"))
	}
	e := entry("r2")
	e.Model, e.Decision = "", contract.Decision{Agent: "ollama", Reason: contract.ReasonKeyAvailability, PinProvider: true, Images: true}
	j.Note(e)
	j.Stop(t.Context())
	j.Note(entry("too late"))
	require.Equal(t, int64(1), lost.Load())

	var mu sync.Mutex
	got := map[string]contract.Log{}
	n := 0
	facts, err := b.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 10, MaxWait: time.Millisecond},
		func(_ context.Context, facts []bus.Fact) error {
			mu.Lock()
			defer mu.Unlock()
			for _, f := range facts {
				var l contract.Log
				if err := json.Unmarshal(f.Data, &l); err != nil || f.Subject != "hydra.v1.log.routing" {
					t.Error(f.Subject, err)
				}
				got[l.RequestID] = l
				n++
			}
			return nil
		})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, facts.Stop(context.Background())) })
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) == 2
	}, 10*time.Second, time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 2, n)
	l := got["r1"]
	require.Equal(t, "auto goes to groq/m: TOKEN_OPTIMIZED, about 12 tokens", l.Message)
	require.Equal(t, [...]string{"INFO", "ROUTING"}, [...]string{l.Level, l.Category})
	require.Equal(t, entry("").At, l.At)
	require.JSONEq(t, `{"session_id":"s1","model":"auto","provider":"groq","target_model":"m","reason":"token_count","search":true,"tokens":12}`, string(l.Metadata))
	l = got["r2"]
	require.Equal(t, "a request without a model goes to ollama: KEY_AVAILABILITY, about 0 tokens", l.Message)
	require.JSONEq(t, `{"session_id":"s1","model":"","agent":"ollama","reason":"key_availability","strict":true,"images":true,"tokens":0}`, string(l.Metadata))
}

// slow is a server that takes nothing until it is told to.
type slow struct {
	release chan struct{}
	taken   atomic.Int64
}

func (s *slow) PublishFact(ctx context.Context, subj, _ string, _ []byte) error {
	if subj != subject.Log(category) {
		return errors.New("wrong subject")
	}
	select {
	case <-s.release:
		s.taken.Add(1)
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
		for i := range writers {
			j.Note(entry(strconv.Itoa(i)))
		}
		synctest.Wait() // each writer holds one
		for i := range queueSize + 7 {
			j.Note(entry(strconv.Itoa(i)))
		}
		require.Equal(t, int64(7), lost.Load())
		close(s.release)
		j.Stop(t.Context())
		require.Equal(t, int64(queueSize+writers), s.taken.Load())
		require.Equal(t, int64(7), lost.Load())
		j.Stop(t.Context())
	})
}

// A stop is not held up for longer than its context, nor an entry by a server that does not answer.
func TestServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		j := New(&slow{}, quiet, func() { lost.Add(1) })
		for i := range 2 * writers {
			j.Note(entry(strconv.Itoa(i)))
		}
		<-time.After(sendLimit + time.Second)
		require.Equal(t, int64(writers), lost.Load(), "the next ones are being written")
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		j.Stop(ctx)
		require.Equal(t, 2*time.Second, time.Since(begin))
		require.Equal(t, int64(2*writers), lost.Load())
	})
}

func TestStopOfNothing(t *testing.T) {
	t.Parallel()
	var j *Log
	j.Stop(t.Context())
}

package usage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/usage"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// store keeps what was published; it stands at the consumer's own interface, the bus has tests of its own.
type store struct {
	mu   sync.Mutex
	msgs [][]byte
	err  error
}

func (s *store) PublishFact(_ context.Context, subj, _ string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if subj != subject.UsageRecorded {
		return errors.New("wrong subject")
	}
	s.msgs = append(s.msgs, bytes.Clone(data))
	return s.err
}

func TestFactsOfTheSameMomentShareAMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s store
		r := usage.NewRecorder(&s)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() { require.NoError(t, r.Record(t.Context(), contract.RequestRecord{Total: int64(i)})) })
		}
		wg.Wait()
		r.Stop()
		require.Len(t, s.msgs, 1)
		var sum int64
		for line := range bytes.Lines(s.msgs[0]) {
			var u contract.RequestRecord
			require.NoError(t, json.Unmarshal(line, &u))
			sum += u.Total
		}
		require.Equal(t, int64(49*50/2), sum)
	})
}

func TestRecordReportsWhatHappened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store{err: errors.New("stream is gone")}
		r := usage.NewRecorder(&s)
		start := time.Now()
		require.ErrorIs(t, r.Record(t.Context(), contract.RequestRecord{}), s.err)
		require.Less(t, time.Since(start), time.Second)
		r.Stop()
		r.Stop()
		require.ErrorIs(t, r.Record(t.Context(), contract.RequestRecord{}), usage.ErrStopped)
	})
}

// away is a NATS that does not come back.
type away struct{ given chan error }

func (a away) PublishFact(ctx context.Context, _, _ string, _ []byte) error {
	<-ctx.Done()
	a.given <- context.Cause(ctx)
	return ctx.Err()
}

// what was paid for waits for a NATS that is away as long as it takes, but a stop ends.
func TestRecordsWaitForNATS(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end   func(*usage.Recorder)
		after time.Duration
	}{
		"stop":   {func(r *usage.Recorder) { r.Stop() }, 10 * time.Second},
		"hasten": {func(r *usage.Recorder) { r.Hasten() }, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := away{make(chan error, 2)}
				r := usage.NewRecorder(a)
				first, second := make(chan error, 1), make(chan error, 1)
				go func() { first <- r.Record(t.Context(), contract.RequestRecord{}) }()
				<-time.After(24 * time.Hour)
				require.Empty(t, first)
				go func() { second <- r.Record(t.Context(), contract.RequestRecord{}) }() // waits behind it
				synctest.Wait()
				begun := time.Now()
				tt.end(r)
				require.ErrorIs(t, <-first, context.Canceled)
				require.ErrorIs(t, <-second, context.DeadlineExceeded)
				require.InDelta(t, (tt.after + 3*time.Second).Seconds(), time.Since(begun).Seconds(), 0.1)
				r.Stop()
				require.Len(t, a.given, 2)
			})
		})
	}
}

package usage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
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

// facts reads what a message says.
func facts(t *testing.T, msg []byte) (all []contract.RequestRecord) {
	t.Helper()
	for line := range bytes.Lines(msg) {
		var u contract.RequestRecord
		require.NoError(t, json.Unmarshal(line, &u))
		all = append(all, u)
	}
	return all
}

func TestFactsOfTheSameMomentShareAMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s store
		r := usage.NewRecorder(&s)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				require.NoError(t, r.Record(t.Context(), contract.RequestRecord{RequestID: strconv.Itoa(i), Total: int64(i)}))
			})
		}
		wg.Wait()
		r.Stop()
		require.Len(t, s.msgs, 1)
		var sum int64
		for _, u := range facts(t, s.msgs[0]) {
			sum += u.Total
		}
		require.Equal(t, int64(49*50/2), sum)
	})
}

// call is the fact of a request whose nth call at a delivery has begun.
func call(rid string, delivery uint64, n int) contract.RequestRecord {
	u := contract.RequestRecord{RequestID: rid}
	for i := range n {
		u.Attempts = append(u.Attempts, contract.Attempt{Delivery: delivery, Ordinal: i + 1, Outcome: contract.CallFailed})
	}
	u.Attempts[n-1].Outcome = contract.CallBegun
	return u
}

// that a call begins is told within 20 ms, and the call does not wait for it, also while earlier facts wait for NATS.
func TestBeginIsToldSoonAndNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slow{told: make(chan time.Time, 100)}
		r := usage.NewRecorder(s)
		for i := range 50 {
			begun := time.Now()
			r.Begin(t.Context(), call(strconv.Itoa(i), 1, 1))
			require.Zero(t, time.Since(begun))
			require.LessOrEqual(t, (<-s.told).Sub(begun), 20*time.Millisecond)
		}
		r.Stop()
	})
}

// slow is a NATS that takes its time.
type slow struct{ told chan time.Time }

func (s slow) PublishFact(context.Context, string, string, []byte) error {
	s.told <- time.Now()
	<-time.After(10 * time.Second)
	return nil
}

// of a further call of a delivery nothing else tells, so that it begins when its fact is safe, which is sent at once, or after two seconds.
func TestFurtherCallsWaitForTheirFact(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s store
		r := usage.NewRecorder(&s)
		begun := time.Now()
		r.Begin(t.Context(), call("r", 1, 2))
		require.Zero(t, time.Since(begun))
		require.Len(t, s.msgs, 1)
		require.Len(t, facts(t, s.msgs[0])[0].Attempts, 2)
		r.Stop()

		away := usage.NewRecorder(away{make(chan error, 1)})
		away.Begin(t.Context(), call("r", 1, 2))
		require.Equal(t, 2*time.Second, time.Since(begun))
		away.Hasten()
		away.Stop()
	})
}

// Of several facts of one delivery in a batch only the last goes out, which says all that the others do; those of other deliveries stay.
func TestLaterFactsStandForEarlierOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s store
		r := usage.NewRecorder(&s)
		r.Begin(t.Context(), call("r", 1, 1))
		r.Begin(t.Context(), call("other", 1, 1))
		r.Begin(t.Context(), call("r", 2, 1))
		over := call("r", 1, 1)
		over.Status, over.Attempts[0].Outcome = "success", contract.CallSuccess
		require.NoError(t, r.Record(t.Context(), over))
		r.Stop()
		require.Len(t, s.msgs, 1)
		require.Equal(t, []contract.RequestRecord{call("other", 1, 1), call("r", 2, 1), over}, facts(t, s.msgs[0]))
	})
}

// A message stays far below what NATS takes, whatever names the clients send.
func TestLargeBatchesAreSeveralMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s store
		r := usage.NewRecorder(&s)
		const n = 400
		name := strings.Repeat("\x01", contract.MaxName)
		for i := range n {
			u := call(strconv.Itoa(i), 1, 1)
			u.Model = name
			r.Begin(t.Context(), u)
		}
		r.Stop()
		require.Greater(t, len(s.msgs), 1)
		seen := 0
		for _, m := range s.msgs {
			require.Less(t, len(m), 1<<20)
			seen += len(facts(t, m))
		}
		require.Equal(t, n, seen)
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
				a := away{make(chan error, 3)}
				r := usage.NewRecorder(a)
				first, second := make(chan error, 1), make(chan error, 1)
				go func() { first <- r.Record(t.Context(), contract.RequestRecord{}) }()
				<-time.After(24 * time.Hour)
				require.Empty(t, first)
				go func() { second <- r.Record(t.Context(), contract.RequestRecord{}) }()
				<-time.After(time.Second)
				require.Empty(t, second)
				begun := time.Now()
				tt.end(r)
				require.ErrorIs(t, <-first, context.Canceled)
				require.ErrorIs(t, <-second, context.Canceled)
				require.Equal(t, tt.after, time.Since(begun))
				if tt.after == 0 { // what comes then has a moment
					require.ErrorIs(t, r.Record(t.Context(), contract.RequestRecord{}), context.DeadlineExceeded)
					require.InDelta(t, 3*time.Second, time.Since(begun), float64(100*time.Millisecond))
				}
				r.Stop()
			})
		})
	}
}

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

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/fault"
	"hydrallm/shared/query"
)

// teller is a bus to services that tell what a test says.
type teller struct {
	Bus

	asked  atomic.Int64
	status int
	newest int64 // number of the newest log line
	hang   bool
	err    error
}

func (b *teller) Query(ctx context.Context, _, op string, question []byte) ([]byte, error) {
	b.asked.Add(1)
	switch {
	case b.hang:
		<-ctx.Done()
		return nil, ctx.Err()
	case b.err != nil && op != "status":
		return nil, b.err
	case op == "status":
		return fmt.Appendf(nil, `{"status":"online","n":%d}`, b.status), nil
	case op == "requests":
		return []byte(`{"requests":[]}`), nil
	}
	var q query.Logs
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, err
	}
	entries := []query.LogEntry{}
	for id := b.newest; id > q.After && len(entries) < q.Limit; id-- {
		entries = append(entries, query.LogEntry{ID: id, Message: "m"})
	}
	return json.Marshal(entries)
}

// follow gives the news of a gateway, and what a reader of them does each second: names of events.
func follow(b *teller) (n *news, second func() []string) {
	a := New(Config{Bus: b, Dispatchers: func() []string { return nil }})
	n = a.news
	seen := uint64(0)
	return n, func() (names []string) {
		n.look(context.Background())
		events, last, missed := n.since(seen)
		if seen = last; missed {
			names = append(names, "missed")
		}
		for _, e := range events {
			name, _, _ := strings.Cut(strings.TrimPrefix(string(e), "event: "), "\n")
			names = append(names, name)
		}
		time.Sleep(liveEvery) //nolint:forbidigo // in a bubble
		return names
	}
}

// something is told once, when it has changed; what was there at first is no news; what can't be read is told once, and when it can again.
func TestNewsAreTheChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &teller{newest: 500}
		n, second := follow(b)
		require.Equal(t, []string{"status"}, second())
		require.Empty(t, second())
		b.status = 1
		require.Equal(t, []string{"status"}, second())
		b.newest += 3
		require.Equal(t, []string{"logs"}, second())
		b.newest += liveBatch + 50
		require.Equal(t, []string{"logs"}, second())
		last := string(n.events[len(n.events)-1])
		require.Contains(t, last, `"more":true`)
		require.Equal(t, liveBatch, strings.Count(last, `"message"`))
		require.Empty(t, second())

		b.err = fault.New(fault.Unavailable, "down")
		require.Equal(t, []string{"fault", "fault"}, second())
		require.Empty(t, second())
		now, _ := n.now()
		require.Len(t, now, 3, "a new reader hears of it")
		b.err = nil
		b.newest++
		require.ElementsMatch(t, []string{"fault", "fault", "logs"}, second())
		b.err = errors.New("secret detail")
		second()
		for _, e := range n.events {
			require.NotContains(t, string(e), "secret")
		}
	})
}

// however many read, the services are asked once a second; a reader who is slow misses events and hears so; who comes back after a pause hears
// nothing of the time between.
func TestNewsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &teller{}
		n, second := follow(b)
		second()
		before := b.asked.Load()
		for range 10 {
			n.look(t.Context())
			n.look(t.Context())
		}
		require.Equal(t, before+3, b.asked.Load())
		time.Sleep(liveEvery) //nolint:forbidigo // in a bubble
		second()
		for range 2 * liveEvents {
			b.status++
			n.look(t.Context())
			time.Sleep(liveEvery) //nolint:forbidigo // in a bubble
		}
		require.Len(t, n.events, liveEvents)
		require.Equal(t, "missed", second()[0])
		time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
		b.newest = 9
		require.Equal(t, []string{"status"}, second())
	})
}

// a service that hangs holds nobody up for longer than a look may take.
func TestNewsOfAServiceThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &teller{}
		n, second := follow(b)
		second()
		b.hang = true
		begun := time.Now()
		n.look(t.Context())
		require.Equal(t, liveLimit, time.Since(begun))
		events, _, _ := n.since(1)
		require.Len(t, events, 3, "each part is a fault")
		require.True(t, n.looking.CompareAndSwap(false, true), "the next one may look")
	})
}

func TestReadersAreLimited(t *testing.T) {
	t.Parallel()
	n := New(Config{}).news
	for range liveReaders {
		require.True(t, n.enter())
	}
	require.False(t, n.enter())
	n.leave()
	require.True(t, n.enter())
}

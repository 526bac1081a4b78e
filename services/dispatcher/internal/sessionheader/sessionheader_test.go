package sessionheader_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/sessionheader"
	"hydrallm/services/dispatcher/internal/sessionheader/sessiontest"
	"hydrallm/services/dispatcher/internal/slot/slottest"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestRegistry(t *testing.T) {
	t.Parallel()
	sessiontest.Run(t, 1, func(*testing.T, int) []sessionheader.Source {
		return []sessionheader.Source{&sessionheader.Registry{}}
	})
}

func TestShared(t *testing.T) {
	t.Parallel()
	sessiontest.Run(t, 3, func(_ *testing.T, n int) []sessionheader.Source {
		var m slottest.Memory
		all := make([]sessionheader.Source, n)
		for i := range all {
			all[i] = shared(m.Client(0))
		}
		return all
	})
}

func shared(kv sessionheader.KV) *sessionheader.Shared {
	return sessionheader.NewShared(kv, slog.New(slog.DiscardHandler))
}

// pass lets time go by inside a bubble.
func pass(d time.Duration) { <-time.After(d) }

func mustID(t *testing.T, s sessionheader.Source, messages string) string {
	t.Helper()
	id, ok := s.ID(t.Context(), []byte(messages))
	require.True(t, ok)
	return id
}

const (
	first = `[{"role":"user","content":"q"}]`
	later = `[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"r"}]`
)

// six hours since the last use; 5 h 59 min keeps and counts as a use, 6 h 01 min renews.
func TestExpiry(t *testing.T) {
	t.Parallel()
	var m slottest.Memory
	for name, source := range map[string]sessionheader.Source{"registry": &sessionheader.Registry{}, "shared": shared(m.Client(0))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				id := mustID(t, source, first)
				for range 5 {
					pass(20 * time.Second) // a use that a shared store may not see
					require.Equal(t, id, mustID(t, source, later))
					pass(5*time.Hour + 59*time.Minute)
					require.Equal(t, id, mustID(t, source, later))
				}
				pass(6*time.Hour + time.Minute)
				require.NotEqual(t, id, mustID(t, source, later))
			})
		})
	}
}

// the 1001st session evicts the one that was not used for longest.
func TestEviction(t *testing.T) {
	t.Parallel()
	var r sessionheader.Registry
	question := func(i int, rest string) string { return fmt.Sprintf(`[{"role":"user","content":"q%d"}%s]`, i, rest) }
	ids := make([]string, sessionheader.MaxSessions)
	for i := range ids {
		ids[i] = mustID(t, &r, question(i, ""))
	}
	const rest = `,{"role":"assistant","content":"a"}`
	require.Equal(t, ids[0], mustID(t, &r, question(0, rest))) // now 1 is the oldest
	mustID(t, &r, question(len(ids), ""))
	require.Equal(t, ids[0], mustID(t, &r, question(0, rest)))
	require.Equal(t, ids[2], mustID(t, &r, question(2, rest)))
	require.NotEqual(t, ids[1], mustID(t, &r, question(1, rest)))
}

// another dispatcher uses the conversation on; the one that was idle does not fall back to what it remembers.
func TestSharedUseKeepsAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		a, b := shared(m.Client(0)), shared(m.Client(0))
		id := mustID(t, a, first)
		for range 4 {
			pass(5 * time.Hour)
			require.Equal(t, id, mustID(t, b, later))
		}
		pass(2 * time.Hour)
		require.Equal(t, id, mustID(t, a, later))

		pass(7 * time.Hour)
		renewed := mustID(t, b, later)
		require.NotEqual(t, id, renewed)
		require.Equal(t, renewed, mustID(t, a, later))
	})
}

// A dialogue in use costs one write per half minute, not one per request.
func TestSharedWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		a, b := shared(m.Client(0)), shared(m.Client(0))
		for range 600 {
			require.Equal(t, mustID(t, a, first), mustID(t, b, later))
			pass(time.Second)
		}
		require.LessOrEqual(t, m.Swaps(), 21)
	})
}

// A store that is out of reach, slow, or that forgot everything: the header is still sent, and the id stays.
func TestSharedStoreTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		kv := &slottest.Cuttable{KV: m.Client(0)}
		a, b := shared(kv), shared(m.Client(0))

		kv.Cut(true)
		alone := mustID(t, a, first)
		require.Equal(t, alone, mustID(t, a, later))
		kv.Cut(false)
		require.Equal(t, alone, mustID(t, b, first))
		require.Equal(t, alone, mustID(t, a, later))

		pass(time.Minute)
		m.Clear()
		require.Equal(t, alone, mustID(t, a, later))
		require.Equal(t, alone, mustID(t, b, later))

		slow := shared(m.Client(10 * time.Second))
		start := time.Now()
		mustID(t, slow, first)
		require.Equal(t, time.Second, time.Since(start))
	})
}

// Values that are not ours are replaced, never sent as a header.
func TestSharedForeignValues(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"junk", `{}`, `{"id":"secret\r\nX: y","used":1}`, `{"id":"00","used":1}`} {
		var m slottest.Memory
		mustID(t, shared(m.Client(0)), first)
		for key := range m.Values() {
			m.Put(key, []byte(value))
		}
		require.Regexp(t, "^[0-9a-f]{32}$", mustID(t, shared(m.Client(0)), first))
	}
}

// A client that has gone gets no log line and no error.
func TestSharedCancelled(t *testing.T) {
	t.Parallel()
	var m slottest.Memory
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	id, ok := shared(m.Client(0)).ID(ctx, []byte(first))
	require.True(t, ok)
	require.NotEmpty(t, id)
}

func FuzzID(f *testing.F) {
	for _, seed := range []string{first, later, `[]`, `[[[[`, `[{"role":"user","content":[{"type":"text","text":"\ud800"}]}]`, `[{"role":{"a":[1e9,true,null]}}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, messages []byte) {
		var r, s sessionheader.Registry
		id, ok := r.ID(t.Context(), messages)
		if ok != (len(id) == 32) {
			t.Fatalf("id %q, ok %v", id, ok)
		}
		if again, _ := r.ID(t.Context(), messages); again != id {
			t.Fatalf("%q, then %q", id, again)
		}
		if other, _ := s.ID(t.Context(), messages); other != id {
			t.Fatalf("%q here, %q elsewhere", id, other)
		}
	})
}

func BenchmarkRegistryHit(b *testing.B) {
	var r sessionheader.Registry
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := r.ID(b.Context(), []byte(later)); !ok {
			b.Fatal("no id")
		}
	}
}

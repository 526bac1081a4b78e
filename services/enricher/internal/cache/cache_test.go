package cache_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/cache"
	"hydrallm/services/enricher/internal/page"
	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func keep[T any](T) bool { return true }

// memory is a bucket of the test, for fake time.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
	err    error // of everything
}

func (m *memory) Get(_ context.Context, key string) (bus.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.values[key]; ok && m.err == nil {
		return bus.Entry{Value: v}, nil
	}
	return bus.Entry{}, errors.Join(m.err, bus.ErrKeyNotFound)
}

func (m *memory) Put(_ context.Context, key string, value []byte) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.values[key] = value
	}
	return 1, m.err
}

func inMemory(ttl time.Duration) (*cache.Cache, *memory) {
	m := &memory{values: map[string][]byte{}}
	return cache.New(m, ttl, slog.New(slog.DiscardHandler)), m
}

// a page is read once, by whichever enricher, and its modes are different things.
func TestPagesAreKept(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	bucket, err := b.Bucket(t.Context(), subject.WebCacheBucket)
	require.NoError(t, err)
	reads := 0
	doc := page.Document{URL: "https://a.example/", Title: "A", Published: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Text: "글 & <text>"}
	read := func(kind string) (page.Document, bool) {
		c := cache.New(bucket, time.Hour, slog.New(slog.DiscardHandler))
		defer c.Stop()
		got, cached, err := cache.Get(t.Context(), c, kind, "https://a.example/?q="+strings.Repeat("x", 5000), time.Hour, keep, func(context.Context) (page.Document, error) {
			reads++
			return doc, nil
		})
		require.NoError(t, err)
		return got, cached
	}
	for i, want := range []bool{false, true, true} {
		got, cached := read("page")
		require.Equal(t, doc, got)
		require.Equal(t, want, cached, i)
	}
	_, cached := read("mcp")
	require.False(t, cached)
	require.Equal(t, 2, reads)
}

// what is too old for who asks is read again, and what is kept for others stays of use.
func TestAges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := inMemory(24 * time.Hour)
		defer c.Stop()
		n := 0
		get := func(age time.Duration) (int, bool) {
			got, cached, err := cache.Get(t.Context(), c, "page", "u", age, keep, func(context.Context) (int, error) { n++; return n, nil })
			require.NoError(t, err)
			return got, cached
		}
		for _, step := range []struct {
			wait, age time.Duration
			want      int
			cached    bool
		}{
			{0, time.Hour, 1, false},
			{59 * time.Minute, time.Hour, 1, true},
			{2 * time.Minute, time.Hour, 2, false},
			{20 * time.Minute, 15 * time.Minute, 3, false},
			{23*time.Hour + 59*time.Minute, 48 * time.Hour, 3, true},
			{2 * time.Minute, 48 * time.Hour, 4, false},
		} {
			time.Sleep(step.wait) //nolint:forbidigo // in a bubble
			got, cached := get(step.age)
			require.Equal(t, step.want, got)
			require.Equal(t, step.cached, cached)
		}
	})
}

// failures and what is worth nothing are not kept, nor is anything with a lifetime of 0; a bucket that is away costs nothing but the work.
func TestWhatIsNotKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ttl  time.Duration
		keep bool
		err  error
		away error
	}{
		"an error":           {ttl: time.Hour, keep: true, err: errors.New("404")},
		"worth nothing":      {ttl: time.Hour},
		"no lifetime":        {keep: true},
		"the bucket is away": {ttl: time.Hour, keep: true, away: errors.New("no servers")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, m := inMemory(tc.ttl)
			defer c.Stop()
			m.err = tc.away
			for i := range 2 {
				got, cached, err := cache.Get(t.Context(), c, "page", "u", time.Hour, func(int) bool { return tc.keep }, func(context.Context) (int, error) { return i, tc.err })
				require.ErrorIs(t, err, tc.err)
				require.False(t, cached)
				if tc.err == nil {
					require.Equal(t, i, got)
				}
			}
		})
	}
}

// Many who ask at once wait for one.
func TestWorkIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := inMemory(0)
		defer c.Stop()
		var works, hits atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				got, cached, err := cache.Get(t.Context(), c, "page", "u", time.Hour, keep, func(ctx context.Context) (string, error) {
					works.Add(1)
					time.Sleep(time.Second) //nolint:forbidigo // in a bubble
					return "text", ctx.Err()
				})
				if err == nil && got == "text" && cached {
					hits.Add(1)
				}
			})
		}
		all.Wait()
		require.Equal(t, []int64{1, 99}, []int64{works.Load(), hits.Load()})
	})
}

// The work goes on for the others when the first one leaves, and ends when all have left. Who joined with more time than the first begins anew.
func TestLeaving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := inMemory(0)
		defer c.Stop()
		var begun, ended atomic.Int64
		get := func(ctx context.Context) (string, error) {
			got, _, err := cache.Get(ctx, c, "page", "u", time.Hour, keep, func(ctx context.Context) (string, error) {
				begun.Add(1)
				select {
				case <-ctx.Done():
					ended.Add(1)
					return "", ctx.Err()
				case <-time.After(10 * time.Second):
					return "text", nil
				}
			})
			return got, err
		}
		first, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			_, err := get(first)
			if !errors.Is(err, context.Canceled) {
				t.Error("the first one has left")
			}
		})
		synctest.Wait()
		all.Go(func() {
			if got, err := get(t.Context()); err != nil || got != "text" {
				t.Error("the second one waits", got, err)
			}
		})
		synctest.Wait()
		leave()
		all.Wait()
		require.Equal(t, []int64{1, 0}, []int64{begun.Load(), ended.Load()})

		alone, leave := context.WithCancel(t.Context())
		all.Go(func() { _, _ = get(alone) })
		synctest.Wait()
		leave()
		all.Wait()
		synctest.Wait()
		require.Equal(t, []int64{2, 1}, []int64{begun.Load(), ended.Load()})

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		all.Go(func() { _, _ = get(short) })
		synctest.Wait()
		got, err := get(t.Context())
		require.NoError(t, err)
		require.Equal(t, "text", got)
		all.Wait()
	})
}

// A page that makes the reader panic is an error for all who wait.
func TestPanics(t *testing.T) {
	t.Parallel()
	c, _ := inMemory(time.Hour)
	defer c.Stop()
	_, _, err := cache.Get(t.Context(), c, "page", "u", time.Hour, keep, func(context.Context) (int, error) { panic("deep") })
	require.ErrorContains(t, err, "panicked")
}

// what asks for the present is kept shortly, and how a query is written makes no difference.
func TestQueries(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]time.Duration{
		"who built the tower":      24 * time.Hour,
		"이순신 장군의 생애":               24 * time.Hour,
		"knowledge of snow":        24 * time.Hour,
		"weather now":              15 * time.Minute,
		"TODAY in Seoul":           15 * time.Minute,
		"latest kernel":            15 * time.Minute,
		"서울 날씨 지금 어때":              15 * time.Minute,
		"오늘의 환율":                   15 * time.Minute,
		"현재 대통령":                   15 * time.Minute,
		"what happened this  week": 15 * time.Minute,
		"this is a week":           24 * time.Hour,
	} {
		require.Equal(t, want, cache.MaxAge(query, 24*time.Hour), query)
	}
	require.Equal(t, time.Minute, cache.MaxAge("now", time.Minute))
	require.Equal(t, cache.QueryKey("Lamp  Prices\n"), cache.QueryKey("lamp prices"))
	require.Equal(t, cache.QueryKey("한글"), cache.QueryKey("\u1112\u1161\u11ab\u1100\u1173\u11af"))
	require.NotEqual(t, cache.QueryKey("lamp prices"), cache.QueryKey("lamp price"))
}

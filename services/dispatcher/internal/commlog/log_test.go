package commlog_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/commlog"
	"hydrallm/shared/query"
)

func entry(n int) query.CommEntry {
	return query.CommEntry{Provider: strconv.Itoa(n)}
}

// the last 500, newest first, and no more than is asked for.
func TestRing(t *testing.T) {
	t.Parallel()
	l := commlog.New(func() bool { return true })
	require.Empty(t, l.Newest(10))
	for n := range 1234 {
		l.Add(entry(n))
		if n == 2 {
			require.Equal(t, []query.CommEntry{entry(2), entry(1), entry(0)}, l.Newest(10))
		}
	}
	all := l.Newest(1000)
	require.Len(t, all, 500)
	require.Equal(t, entry(1233), all[0])
	require.Equal(t, entry(734), all[499])
	require.Equal(t, all[:7], l.Newest(7))
	require.Empty(t, l.Newest(-1))
	l.Clear()
	require.Empty(t, l.Newest(1000))
	l.Add(entry(1))
	require.Len(t, l.Newest(1000), 1)
}

// strings of 4000 characters, lists of 50.
func TestBounds(t *testing.T) {
	t.Parallel()
	l := commlog.New(func() bool { return true })
	l.Add(query.CommEntry{Payload: query.CommPayload{Model: strings.Repeat("가", 5000), FinishReasons: slices.Repeat([]string{strings.Repeat("x", 4001)}, 60)}})
	got := l.Newest(1)[0].Payload
	require.Equal(t, strings.Repeat("가", 4000), got.Model)
	require.Len(t, got.FinishReasons, 50)
	require.Len(t, got.FinishReasons[49], 4000)
}

func TestOff(t *testing.T) {
	t.Parallel()
	on := false
	l := commlog.New(func() bool { return on })
	require.False(t, l.Enabled())
	on = true
	require.True(t, l.Enabled())
	require.False(t, (*commlog.Log)(nil).Enabled())
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	l := commlog.New(func() bool { return true })
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 300 {
				l.Add(entry(n*1000 + i))
				l.Newest(3)
			}
		})
	}
	wg.Wait()
	require.Len(t, l.Newest(1000), 500)
}

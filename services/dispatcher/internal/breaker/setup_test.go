package breaker

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// bubble is a breaker under a fake clock.
type bubble struct {
	t   *testing.T
	b   *Breaker
	log *transitions
}

func inBubble(t *testing.T, cfg Config, fn func(bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log transitions
		b, err := New(cfg, log.add)
		require.NoError(t, err)
		fn(bubble{t, b, &log})
	})
}

// pass lets time go by inside a bubble.
func pass(d time.Duration) { <-time.After(d) }

type transitions struct {
	mu   sync.Mutex
	list []Transition
}

func (l *transitions) add(t Transition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, t)
}

// states gives the states that were entered, in order.
func (l *transitions) states() []State {
	l.mu.Lock()
	defer l.mu.Unlock()
	var s []State
	for _, t := range l.list {
		s = append(s, t.To)
	}
	return s
}

func fail(t *testing.T, b *Breaker, times int) {
	t.Helper()
	for range times {
		p, ok := b.Acquire()
		require.True(t, ok)
		p.Failure(0)
	}
}

func succeed(t *testing.T, b *Breaker) {
	t.Helper()
	p, ok := b.Acquire()
	require.True(t, ok)
	p.Success()
}

func requireRejects(t *testing.T, b *Breaker) {
	t.Helper()
	_, ok := b.Acquire()
	require.False(t, ok)
}

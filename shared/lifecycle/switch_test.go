package lifecycle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/lifecycle"
	"hydrallm/shared/testkit/startstoptest"
)

// engine is a service that counts what runs.
type engine struct {
	*lifecycle.Switch[turn]
	running atomic.Int32
	turns   int
}

type turn struct{ number int }

func newEngine() *engine {
	e := &engine{}
	e.Switch = lifecycle.NewSwitch(e.begin, e.end)
	return e
}

func (e *engine) begin(ctx context.Context, t *turn) error {
	if e.running.Add(1) != 1 {
		return errors.New("it runs twice")
	}
	e.turns++
	t.number = e.turns
	return ctx.Err()
}

func (e *engine) end(context.Context, *turn) error {
	if e.running.Add(-1) != 0 {
		return errors.New("it ends without a run")
	}
	return nil
}

func TestSwitch(t *testing.T) {
	t.Parallel()
	e := newEngine()
	startstoptest.Stress(t, e, func() {
		require.Equal(t, int32(1), e.running.Load())
		require.Equal(t, e.turns, e.Running().number, "each start makes a new run")
	})
	require.Zero(t, e.running.Load())
	require.Nil(t, e.Running())
}

// A start that fails is undone, also when its own time is over; both errors are reported.
func TestSwitchUndoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		errUndo := errors.New("undoing")
		ctx, cancel := context.WithCancel(t.Context())
		s := lifecycle.NewSwitch(func(context.Context, *turn) error { cancel(); return errPart }, func(ctx context.Context, _ *turn) error {
			require.NoError(t, ctx.Err())
			<-ctx.Done()
			return errUndo
		})
		begun := time.Now()
		err := s.Start(ctx)
		require.ErrorIs(t, err, errPart)
		require.ErrorIs(t, err, errUndo)
		require.Equal(t, 10*time.Second, time.Since(begun), "it takes no longer than that")
		require.NoError(t, s.Stop(t.Context()), "nothing is left to stop")
	})
}

// Whoever stops a service that is being stopped waits for the end.
func TestSwitchStopsOnce(t *testing.T) {
	t.Parallel()
	ends, begun, release := 0, make(chan struct{}), make(chan struct{})
	s := lifecycle.NewSwitch(func(context.Context, *turn) error { return nil }, func(context.Context, *turn) error {
		ends++
		close(begun)
		<-release
		return errPart
	})
	require.NoError(t, s.Start(t.Context()))
	first := make(chan error, 1)
	go func() { first <- s.Stop(t.Context()) }()
	<-begun
	require.NotNil(t, s.Running(), "there is still something to ask")
	second := make(chan error, 1)
	go func() { second <- s.Stop(t.Context()) }()
	require.Empty(t, second)
	close(release)
	require.ErrorIs(t, <-first, errPart)
	require.NoError(t, <-second)
	require.Nil(t, s.Running())
	require.Equal(t, 1, ends)
}

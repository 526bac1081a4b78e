package process_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/startstoptest"
)

// worker is a service that looks at its unit while it stops.
type worker struct {
	bus  *bus.Bus
	stop func()
}

func (w *worker) Start(context.Context) error { return nil }

func (w *worker) Stop(context.Context) error {
	w.stop()
	return nil
}

func (w *worker) Busy() string { return "3 answers" }

// The connection of a unit is there from before its service starts until after it has stopped; the unit is not ready any more once it stops.
func TestUnit(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	var u *process.Unit
	stops := 0
	u = process.NewUnit(bus.Config{InProcess: natstest.Start(t), Name: "unit", Logger: quiet}, process.Parts{ID: "unit-1", Log: quiet}, func(p process.Parts) (lifecycle.Service, error) {
		if p.ID != "unit-1" || !p.Bus.Ready() {
			t.Errorf("built from %q, connected %t", p.ID, p.Bus.Ready())
		}
		w := &worker{bus: p.Bus}
		w.stop = func() {
			stops++
			if !w.bus.Ready() || u.Ready() || u.Busy() != "3 answers" {
				t.Errorf("while it stops: connected %t, ready %t, busy with %q", w.bus.Ready(), u.Ready(), u.Busy())
			}
		}
		return w, nil
	})
	require.False(t, u.Ready())
	require.Empty(t, u.Busy())
	startstoptest.Stress(t, u, func() {
		require.True(t, u.Ready())
		require.Equal(t, "3 answers", u.Busy())
	})
	require.GreaterOrEqual(t, stops, 3)
	require.False(t, u.Ready())
}

// What can't be built leaves no connection behind.
func TestUnitThatCantBeBuilt(t *testing.T) {
	t.Parallel()
	errBuild := errors.New("no building")
	var left *bus.Bus
	u := process.NewUnit(bus.Config{InProcess: natstest.Start(t), Name: "unit", Logger: slog.New(slog.DiscardHandler)}, process.Parts{}, func(p process.Parts) (lifecycle.Service, error) {
		left = p.Bus
		return nil, errBuild
	})
	require.ErrorIs(t, u.Start(t.Context()), errBuild)
	require.False(t, left.Ready())
	require.NoError(t, u.Stop(t.Context()))
}

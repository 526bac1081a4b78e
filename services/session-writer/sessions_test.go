package sessionwriter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// hurried is a stream of facts whose reader runs out of time after some of them.
type hurried struct {
	*bus.Bus

	left int
}

var errNoTime = errors.New("no time")

func (h *hurried) NextFact(ctx context.Context, subj string, from uint64) (bus.Fact, bool, error) {
	if h.left--; h.left < 0 {
		return bus.Fact{}, false, errNoTime
	}
	return h.Bus.NextFact(ctx, subj, from)
}

// of more facts than there is time for, those that were stored stay stored, so that the rest becomes smaller with every try.
func TestCatchingUpGoesOn(t *testing.T) {
	t.Parallel()
	const turns, perTry = 2 * portion, portion + portion/2
	db, err := store.Open(t.Context(), sqliteAddress(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	h := &hurried{Bus: bustest.Start(t)}
	log := slog.New(slog.DiscardHandler)
	s := &sessions{store: db, database: &database{store: db, log: log, up: prometheus.NewGauge(prometheus.GaugeOpts{Name: "up"})}, facts: h, log: log}
	publish := func(n int, kind contract.TurnKind, message string) {
		rid := fmt.Sprintf("r%d", n)
		data, err := json.Marshal(contract.Turn{Session: "s", RequestID: rid, Principal: "k:1", Unsaved: true, Messages: []string{message}, At: time.Now()})
		require.NoError(t, err)
		require.NoError(t, h.PublishFact(t.Context(), subject.Turn("s", string(kind)), rid+"."+string(kind), data))
	}
	for n := range turns {
		publish(n, contract.TurnAsked, fmt.Sprintf(`{"role":"user","content":"ask %d"}`, n))
		publish(n, contract.TurnAnswered, fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, n))
	}
	tries := 0
	for last := uint64(0); ; tries++ {
		h.left = perTry
		err := s.catchUp(t.Context(), "s")
		applied, aerr := db.Applied(t.Context(), "s")
		require.NoError(t, aerr)
		require.Greater(t, applied, last)
		if last = applied; err == nil {
			break
		}
		require.ErrorIs(t, err, errNoTime)
	}
	require.Positive(t, tries)
	h.left = perTry
	pending, _, err := s.pending(t.Context(), "s")
	require.NoError(t, err)
	require.Empty(t, pending)
	session, err := db.Session(t.Context(), "s")
	require.NoError(t, err)
	require.EqualValues(t, 2*turns, session.MessageCount)
}

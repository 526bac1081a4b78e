package dispatcher

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/faultbus"
	"hydrallm/shared/testkit/natstest"
)

// an answer of a session, and a response, that can't be stored while their clients wait are stored when NATS is back.
func TestFactsAreStoredLate(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	link := faultbus.Before(t, server, 1)
	k := newKeeper(bustest.Connect(t, link), slog.New(slog.DiscardHandler))
	reader := bustest.Connect(t, server)
	stored := func(subj string) bool {
		_, ok, err := reader.NextFact(t.Context(), subj, 1)
		require.NoError(t, err)
		return ok
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	turn := &contract.Turn{Session: "s", RequestID: "r", Kind: contract.TurnAnswered}
	link.Part()
	require.Error(t, k.Keep(ctx, turn))
	require.Error(t, k.KeepResponse(ctx, &contract.StoredResponse{ID: "resp_1"}))
	link.Join()
	for _, subj := range []string{subject.Turn("s", string(contract.TurnAnswered)), subject.Stored("resp_1")} {
		await.True(t, func() bool { return stored(subj) }, subj)
	}
	k.stop()
}

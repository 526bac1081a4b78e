package execute_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// nobody waits for the begin of a recorded answer, so that it is held back until content comes, and another worker may begin it anew until then.
// It has its lifetime instead of other limits of the whole request.
func TestBackgroundAnswerBeginsWithContent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		silence time.Duration
		outcome string
		headAt  time.Duration
	}{
		"slow":     {4 * time.Minute, contract.OutcomeSuccess, 4 * time.Minute},
		"too slow": {20 * time.Minute, contract.OutcomeError, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": events(pause(tt.silence), delta(`{"content":"x"}`), stop, doneEvent)}, func(w *world) {
				t := w.t
				w.exec.Limits.RequestDeadline = time.Minute
				w.plan.chain.Links[0].Channel.RequestTimeout = time.Hour
				start := time.Now()
				j, got := job(streamBody), &answer{}
				j.Request.Background, j.Request.StartBy = true, start.Add(10*time.Minute)
				w.exec.Run(t.Context(), j, got)
				require.Equal(t, tt.headAt, got.headAt.Sub(start))
				require.Equal(t, &contract.End{Outcome: tt.outcome}, got.end)
			})
		})
	}
}

package slot

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// SLOT-03: the grant and the hang-up happen at the same moment, and the caller sees the hang-up first.
func TestGrantMeetsHangUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict error
		held    int
	}{"granted": {nil, 1}, "refused": {ErrBusy, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{})
			close(ended)
			p := &pool{shared: &Shared{work: make(chan *pool), done: ended}, held: 2}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, p.abandon(ctx, &waiter{done: ended, err: c.verdict}), context.Canceled)
			require.Equal(t, c.held, p.held)
		})
	}
}

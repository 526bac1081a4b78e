package bus

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// slowStore needs its time for a body.
type slowStore struct {
	jetstream.ObjectStore

	takes time.Duration
	fails error
	tries int
}

func (s *slowStore) GetBytes(ctx context.Context, name string, _ ...jetstream.GetObjectOpt) ([]byte, error) {
	s.tries++
	select {
	case <-time.After(s.takes):
		return []byte(name), s.fails
	case <-ctx.Done():
		return nil, nats.ErrTimeout // as it says itself
	}
}

// a body gets through a machine that needs long for it.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	tests := map[string]struct {
		takes time.Duration
		fails error
		tries int
		err   error
	}{
		"fast":                {time.Second, nil, 1, nil},
		"slow":                {time.Minute, nil, 4, nil},
		"it never comes":      {time.Hour, nil, 5, nats.ErrTimeout},
		"it is broken":        {time.Second, broken, 1, broken},
		"it is slowly broken": {15 * time.Second, broken, 2, broken},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &slowStore{takes: tt.takes, fails: tt.fails}
				body, err := (&Bus{bodies: s}).loadBody(t.Context(), "b")
				require.ErrorIs(t, err, tt.err)
				require.Equal(t, tt.tries, s.tries)
				if tt.err == nil {
					require.Equal(t, "b", string(body))
				}
				left := errors.New("left")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Millisecond, func() { cancel(left) })
				_, err = (&Bus{bodies: s}).loadBody(ctx, "b")
				require.Error(t, err)
				require.Equal(t, tt.tries+1, s.tries, "nobody waits any more")
			})
		})
	}
}

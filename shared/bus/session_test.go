package bus

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/topology"
)

// fakeServer is a server in a state that a test sets.
type fakeServer struct {
	mu      sync.Mutex
	away    bool   // the connection is down
	broken  error  // of ensure
	missing error  // of look
	mute    bool   // look gets no answer
	tries   int    // of ensure
	during  func() // called once while the server is brought to the wanted state
}

func (f *fakeServer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeServer) ensured() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries
}

func (f *fakeServer) online() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.away
}

func (f *fakeServer) ensure(context.Context) (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	if f.during != nil {
		f.during()
		f.during = nil
	}
	return time.Now(), f.broken
}

func (f *fakeServer) look(ctx context.Context) error {
	f.mu.Lock()
	mute, missing := f.mute, f.missing
	f.mu.Unlock()
	if mute {
		<-ctx.Done()
		return ctx.Err()
	}
	return missing
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// watched is a session that looks after a fake server.
type watched struct {
	*testing.T
	*session

	server *fakeServer
}

// pass lets time go by inside a bubble.
func pass(d time.Duration) { <-time.After(d) }

var errBroken = errors.New("no leader")

func TestSession(t *testing.T) {
	t.Parallel()
	tests := map[string]func(x *watched){
		"a healthy server is left alone": func(x *watched) {
			epoch := x.next()
			pass(time.Hour)
			require.False(x, closed(epoch))
			require.Equal(x, 1, x.server.ensured())
			require.True(x, x.ready())
		},
		"a reconnection begins an epoch": func(x *watched) {
			epoch := x.next()
			x.server.set(func() { x.server.away = true })
			x.lose()
			require.False(x, x.ready())
			pass(time.Hour)
			require.Equal(x, 1, x.server.ensured(), "nobody asks a server that is away")
			require.False(x, closed(epoch))
			x.server.set(func() { x.server.away = false })
			x.doubt()
			synctest.Wait()
			require.True(x, closed(epoch))
			require.True(x, x.ready())
		},
		"it goes on until the server is as wanted": func(x *watched) {
			epoch := x.next()
			x.server.set(func() { x.server.broken = errBroken })
			x.doubt()
			pass(time.Minute)
			require.False(x, closed(epoch))
			require.False(x, x.ready())
			require.Greater(x, x.server.ensured(), 60)
			x.server.set(func() { x.server.broken = nil })
			pass(lastPause)
			synctest.Wait()
			require.True(x, closed(epoch))
		},
		"it waits for the connection in between": func(x *watched) {
			x.server.set(func() { x.server.broken = errBroken })
			x.doubt()
			pass(lastPause)
			x.server.set(func() { x.server.away = true })
			x.lose()
			pass(lastPause)
			tries := x.server.ensured()
			pass(time.Hour)
			require.Equal(x, tries, x.server.ensured())
			x.server.set(func() { x.server.away, x.server.broken = false, nil })
			x.doubt()
			synctest.Wait()
			require.True(x, x.ready())
		},
		"a loss while it works begins no epoch": func(x *watched) {
			epoch := x.next()
			x.server.set(func() { x.server.during = x.lose })
			x.doubt()
			synctest.Wait()
			require.False(x, closed(epoch))
			require.False(x, x.ready())
			x.doubt()
			synctest.Wait()
			require.True(x, closed(epoch))
		},
		"what the work on an epoch has met begins no other one": func(x *watched) {
			x.server.set(func() { x.server.during = x.doubt })
			x.doubt()
			synctest.Wait()
			require.Equal(x, 2, x.server.ensured())
			require.True(x, x.ready())
		},
		"what is missing is noticed although nobody uses it": func(x *watched) {
			epoch := x.next()
			x.server.set(func() { x.server.missing = errBroken })
			pass(lookEvery)
			synctest.Wait()
			require.True(x, closed(epoch))
			require.Equal(x, 2, x.server.ensured())
		},
		"one look without an answer means nothing": func(x *watched) {
			x.server.set(func() { x.server.mute = true })
			pass(lookEvery + lookLimit/2)
			x.server.set(func() { x.server.mute = false })
			pass(time.Minute)
			require.Equal(x, 1, x.server.ensured())
		},
		"two looks without an answer do": func(x *watched) {
			x.server.set(func() { x.server.mute, x.server.broken = true, errBroken })
			pass(2*lookEvery + 2*lookLimit)
			synctest.Wait()
			require.False(x, x.ready())
			x.server.set(func() { x.server.mute, x.server.broken = false, nil })
			pass(lastPause)
			synctest.Wait()
			require.True(x, x.ready())
		},
		"a refusal for good is tried again with the next look": func(x *watched) {
			x.server.set(func() { x.server.broken = &jetstream.APIError{ErrorCode: 10074} })
			x.doubt()
			synctest.Wait()
			require.False(x, x.ready())
			x.server.set(func() { x.server.broken, x.server.missing = nil, errBroken })
			pass(lookEvery)
			synctest.Wait()
			require.True(x, x.ready())
		},
		"a puller that gets nothing shows": func(x *watched) {
			x.drip(+1)
			require.False(x, x.ready())
			x.drip(-1)
			require.True(x, x.ready())
		},
		"who waits goes on with the epoch": func(x *watched) {
			x.server.set(func() { x.server.broken = errBroken })
			x.doubt()
			synctest.Wait()
			waited := make(chan error, 1)
			go func() { waited <- x.await(x.Context()) }()
			pass(time.Minute)
			require.Empty(x, waited)
			x.server.set(func() { x.server.broken = nil })
			require.NoError(x, <-waited)
		},
		"who waits stops with its context": func(x *watched) {
			x.server.set(func() { x.server.broken = errBroken })
			x.doubt()
			synctest.Wait()
			ctx, cancel := context.WithCancelCause(x.Context())
			cancel(errBroken)
			err := x.await(ctx)
			require.ErrorIs(x, err, context.Canceled)
			require.ErrorIs(x, err, errBroken)
			x.server.set(func() { x.server.broken = nil })
		},
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				x := &watched{T: t, server: f, session: newSession(f, slog.New(slog.DiscardHandler))}
				require.NoError(t, x.start(t.Context()))
				synctest.Wait()
				run(x)
				x.stop()
			})
		})
	}
}

// Each try of a start has a line in the log, and the end of its context ends it.
func TestSessionStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := &fakeServer{broken: errBroken}
		s := newSession(f, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, s.start(ctx), context.DeadlineExceeded)
		require.Equal(t, f.ensured(), strings.Count(log.String(), "trying again"))
		require.Contains(t, log.String(), errBroken.Error())

		f.set(func() { f.broken = &jetstream.APIError{ErrorCode: 10074} })
		require.True(t, topology.Final(s.start(t.Context())))
	})
}

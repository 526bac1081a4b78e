package bus_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/fault"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
)

// serve answers queries until the end of the test.
func serve(t *testing.T, b *bus.Bus, instance string, handlers map[string]bus.QueryHandler) *bus.Service {
	t.Helper()
	s, err := b.Serve(t.Context(), bus.QueryConfig{Service: "svc", Instance: instance, Version: "1.2.3-rc1", Handlers: handlers})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	return s
}

func TestQueries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ask := func(op, question string) (string, error) {
		answer, err := b.Query(t.Context(), "svc", op, []byte(question))
		return string(answer), err
	}
	_, err := ask("echo", "x")
	require.ErrorIs(t, err, bus.ErrNoService)
	said := &fault.Fault{Kind: fault.NotFound, Message: "there is no \"x\"\n안녕", Param: "p", Code: "c", RetryAfter: 5, Cause: errors.New("secret detail")}
	serve(t, b, "i1", map[string]bus.QueryHandler{
		"echo":   func(_ context.Context, data []byte) ([]byte, error) { return data, nil },
		"refuse": func(context.Context, []byte) ([]byte, error) { return nil, said },
		"break":  func(context.Context, []byte) ([]byte, error) { return nil, errors.New("secret detail") },
		"large":  func(context.Context, []byte) ([]byte, error) { return make([]byte, 9<<20), nil },
	})
	answer, err := ask("echo", "x")
	require.NoError(t, err)
	require.Equal(t, "x", answer)

	_, err = ask("refuse", "")
	got, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok, err)
	require.ErrorIs(t, err, said)
	want := *said
	want.Cause = nil
	require.Equal(t, &want, got, "everything but the cause crosses the wire")

	for _, op := range []string{"break", "large"} {
		_, err = ask(op, "")
		require.ErrorIs(t, err, fault.New(fault.Internal, ""), op)
		require.Equal(t, "Internal server error", err.Error(), op)
	}
	_, err = ask("unknown", "")
	require.ErrorIs(t, err, bus.ErrNoService)
}

// A query for one instance reaches that one, and none when it is not there.
func TestQueriesOfOneInstance(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := func(name string) map[string]bus.QueryHandler {
		return map[string]bus.QueryHandler{"who": func(context.Context, []byte) ([]byte, error) { return []byte(name), nil }}
	}
	first := serve(t, b, "first", name("first"))
	serve(t, b, "second", name("second"))
	for range 10 {
		for _, want := range []string{"first", "second"} {
			answer, err := b.QueryInstance(t.Context(), "svc", want, "who", nil)
			require.NoError(t, err)
			require.Equal(t, want, string(answer))
		}
	}
	_, err := b.QueryInstance(t.Context(), "svc", "first", "unknown", nil)
	require.ErrorIs(t, err, fault.New(fault.NotFound, ""))
	require.NoError(t, first.Stop(t.Context()))
	_, err = b.QueryInstance(t.Context(), "svc", "first", "who", nil)
	require.ErrorIs(t, err, bus.ErrNoService)
	answer, err := b.Query(t.Context(), "svc", "who", nil)
	require.NoError(t, err)
	require.Equal(t, "second", string(answer))
}

// A slow query holds up no other one, not even of the same operation; all of them are answered at a stop, and cut off when its time is over.
func TestQueriesAtTheSameTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun, release := make(chan struct{}, 8), make(chan struct{})
	s := serve(t, b, "i1", map[string]bus.QueryHandler{
		"wait": func(ctx context.Context, _ []byte) ([]byte, error) {
			begun <- struct{}{}
			select {
			case <-release:
				return []byte("released"), nil
			case <-ctx.Done():
				return nil, fault.New(fault.Unavailable, "cut off")
			}
		},
	})
	answers := make(chan string, 8)
	var asking sync.WaitGroup
	ask := func() {
		asking.Go(func() {
			answer, err := b.Query(t.Context(), "svc", "wait", nil)
			if err != nil {
				answer = []byte(err.Error())
			}
			answers <- string(answer)
		})
	}
	for range 3 {
		ask()
		await.Value(t, begun)
	}
	stopped := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { stopped <- s.Stop(ctx) }()
	release <- struct{}{}
	require.Equal(t, "released", await.Value(t, answers))
	require.Empty(t, stopped)
	cancel()
	require.NoError(t, await.Value(t, stopped))
	asking.Wait()
	require.Equal(t, "cut off", await.Value(t, answers))
	require.Equal(t, "cut off", await.Value(t, answers))
	require.NoError(t, s.Stop(t.Context()))
	_, err := b.Query(t.Context(), "svc", "wait", nil)
	require.ErrorIs(t, err, bus.ErrNoService)
}

// an instance that stops refuses no query; another one answers it, and when there is none the service is not running.
func TestQueriesWhileInstancesStop(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	b := bustest.Connect(t, server)
	handlers := map[string]bus.QueryHandler{"who": func(context.Context, []byte) ([]byte, error) { return nil, nil }}
	serve(t, b, "stays", handlers)
	over := make(chan struct{})
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if _, err := b.Query(t.Context(), "svc", "who", nil); err != nil {
					t.Error(err)
					return
				}
				if _, err := b.QueryInstance(t.Context(), "svc", "goes", "who", nil); err != nil && !errors.Is(err, bus.ErrNoService) {
					t.Error(err)
					return
				}
			}
		})
	}
	other := bustest.Connect(t, server)
	for range 200 {
		s, err := other.Serve(t.Context(), bus.QueryConfig{Service: "svc", Instance: "goes", Handlers: handlers})
		require.NoError(t, err)
		require.NoError(t, s.Stop(t.Context()))
	}
	close(over)
	asking.Wait()
}

// More queries than may run at the same time wait for their turn.
func TestManyQueries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const limit, all = 64, 100
	begun, release := make(chan struct{}, all), make(chan struct{})
	serve(t, b, "i1", map[string]bus.QueryHandler{
		"wait": func(context.Context, []byte) ([]byte, error) {
			begun <- struct{}{}
			<-release
			return nil, nil
		},
	})
	var asking sync.WaitGroup
	for range all {
		asking.Go(func() {
			if _, err := b.Query(t.Context(), "svc", "wait", nil); err != nil {
				t.Error(err)
			}
		})
	}
	for range limit {
		await.Value(t, begun)
	}
	require.Empty(t, begun)
	close(release)
	asking.Wait()
	require.Len(t, begun, all-limit)
}

package bus_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

// what a worker has no room for stays in the stream, where another worker takes it, whose handlers are free.
func TestWhatThereIsNoRoomForIsNotFetched(t *testing.T) {
	t.Parallel()
	const room, requests = 2, 24
	server := natstest.Start(t)
	b := bustest.Connect(t, server)
	letRun(t, b)
	for n := range requests {
		require.NoError(t, b.PublishWork(t.Context(), request(fmt.Sprint("r", n)), []byte("{}")))
	}
	begun, finish := make(chan uint64, requests), make(chan struct{})
	work := func(b *bus.Bus, room int, wait <-chan struct{}) {
		c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: room}, func(ctx context.Context, w *bus.Work) {
			begun <- w.Delivery
			select {
			case <-wait:
			case <-ctx.Done():
			}
			w.Done()
		})
		require.NoError(t, err)
		t.Cleanup(func() { startstoptest.Stop(t, c) })
	}
	work(b, room, finish)
	nc, err := nats.Connect("", nats.InProcessServer(server))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	fetched := func() int {
		c, err := js.Consumer(t.Context(), subject.WorkStream, topology.Dispatcher)
		require.NoError(t, err)
		return c.CachedInfo().NumAckPending
	}
	for range room {
		require.Equal(t, uint64(1), await.Value(t, begun))
	}
	const rounds = requests / 3
	for range rounds {
		finish <- struct{}{}
		require.Equal(t, uint64(1), await.Value(t, begun))
		await.True(t, func() bool { return fetched() <= room }, "only what is handled has been fetched")
	}
	free := make(chan struct{})
	close(free)
	work(bustest.Connect(t, server), room, free)
	for range requests - room - rounds { // the first worker has no room for them
		require.Equal(t, uint64(1), await.Value(t, begun))
	}
	close(finish)
	await.True(t, func() bool { return fetched() == 0 })
}

// requests in the background take no room of those whose clients wait.
func TestBackgroundHasRoomOfItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	letRun(t, b)
	begun, finish := make(chan string, 8), make(chan struct{})
	c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Enricher, MaxInFlight: 1}, func(ctx context.Context, w *bus.Work) {
		begun <- w.Request.ID
		select {
		case <-finish:
		case <-ctx.Done():
		}
		w.Done()
	})
	require.NoError(t, err)
	defer startstoptest.Stop(t, c)
	for i := range 2 {
		begin(t, b, background(fmt.Sprint("background", i), contract.StageAnalyzed, contract.StageEnriched))
	}
	require.Equal(t, "background0", await.Value(t, begun))
	require.NoError(t, b.PublishWork(t.Context(), request("client", contract.StageAnalyzed, contract.StageEnriched), []byte("{}")))
	require.Equal(t, "client", await.Value(t, begun))
	close(finish)
	require.Equal(t, "background1", await.Value(t, begun))
}

// a handler that waits gives its place to another one, once, and has its message as before.
func TestYield(t *testing.T) {
	t.Parallel()
	b := setup(t)
	letRun(t, b)
	begun, finish := make(chan string, 8), make(chan struct{})
	c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Enricher, MaxInFlight: 1}, func(_ context.Context, w *bus.Work) {
		begun <- w.Request.ID
		if w.Request.ID == "waits" {
			w.Yield()
			w.Yield()
			<-finish
		}
		w.Done()
	})
	require.NoError(t, err)
	defer startstoptest.Stop(t, c)
	publish := func(rid string) {
		require.NoError(t, b.PublishWork(t.Context(), request(rid, contract.StageAnalyzed, contract.StageEnriched), []byte("{}")))
		require.Equal(t, rid, await.Value(t, begun))
	}
	publish("waits")
	publish("next")
	publish("one more")
	await.True(t, func() bool { return c.InFlight() == 1 })
	close(finish)
	await.True(t, func() bool { return c.InFlight() == 0 })
	publish("last")
}

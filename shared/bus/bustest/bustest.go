// Package bustest connects tests to real NATS servers.
package bustest

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/faultbus"
	"hydrallm/shared/testkit/natstest"
)

// Start gives a connection to a server of its own. Both end with the test.
func Start(tb testing.TB) *bus.Bus {
	tb.Helper()
	return Connect(tb, natstest.Start(tb))
}

// WeatherEnv is the environment variable that puts a faultbus in front of every server, with this seed, so that the suites of the services run in bad weather.
const WeatherEnv = "BUS_WEATHER"

// Connect gives one more connection to a server. It is closed at the end of the test, after what is registered for it later.
func Connect(tb testing.TB, server bus.InProcess) *bus.Bus {
	tb.Helper()
	if text := os.Getenv(WeatherEnv); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(tb, err, WeatherEnv)
		server = faultbus.Before(tb, server, seed, faultbus.Weather()...)
	}
	return connect(tb, bus.Config{InProcess: server})
}

// Dial is Connect to a server that listens on an address, as services do that run apart from it.
func Dial(tb testing.TB, url string) *bus.Bus {
	tb.Helper()
	return connect(tb, bus.Config{URL: url})
}

func connect(tb testing.TB, cfg bus.Config) *bus.Bus {
	tb.Helper()
	cfg.Name, cfg.Logger = tb.Name(), slog.New(slog.DiscardHandler)
	b, err := bus.Connect(tb.Context(), cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, b.Close(context.WithoutCancel(tb.Context()))) })
	return b
}

// LimitWork lets the stream of requests of a server hold no more than some bytes.
func LimitWork(tb testing.TB, server bus.InProcess, maxBytes int64) {
	tb.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(server))
	require.NoError(tb, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(tb, err)
	ctx, cancel := context.WithTimeout(tb.Context(), await.Limit)
	defer cancel()
	stream, err := js.Stream(ctx, subject.WorkStream)
	require.NoError(tb, err)
	cfg := stream.CachedInfo().Config
	cfg.MaxBytes = maxBytes
	_, err = js.UpdateStream(ctx, cfg)
	require.NoError(tb, err)
}

// AwaitDeliveries waits until a consumer of the stream of requests of a server has delivered so often, whatever to whom.
func AwaitDeliveries(tb testing.TB, url, consumer string, n uint64) {
	tb.Helper()
	nc, err := nats.Connect(url)
	require.NoError(tb, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(tb, err)
	c, err := js.Consumer(tb.Context(), subject.WorkStream, consumer)
	require.NoError(tb, err)
	await.True(tb, func() bool {
		info, err := c.Info(tb.Context())
		return err == nil && info.Delivered.Consumer >= n
	}, consumer, "has delivered", n, "times")
}

// Owner is an ingress for tests that let every request be worked on. The zero value lets redeliveries run.
type Owner struct {
	Decide func(contract.FenceQuestion) contract.FenceAnswer // about redeliveries; nil = they run
	Signs  chan contract.Sign                                // gets the signs of life; nil = nobody wants to know
}

// Own serves workers that ask about the requests of an ingress, until the end of the test.
func Own(tb testing.TB, b *bus.Bus, ingress string, o Owner) {
	tb.Helper()
	sub, err := b.ServeOwner(ingress, &owner{Owner: o, back: map[string][]uint64{}})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, sub.Stop()) })
}

// owner is an Owner that remembers what was handed back, so that it is not counted as lost.
type owner struct {
	Owner

	mu   sync.Mutex
	back map[string][]uint64 // deliveries by request
}

// Fence implements bus.Owner.
func (o *owner) Fence(q contract.FenceQuestion) contract.FenceAnswer {
	a := o.Owner.Fence(q)
	if o.Decide == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		a.Lost = slices.DeleteFunc(a.Lost, func(d uint64) bool { return slices.Contains(o.back[q.RequestID], d) })
	}
	return a
}

// HandedBack implements bus.Owner.
func (o *owner) HandedBack(s contract.Sign) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.back[s.RequestID] = append(o.back[s.RequestID], s.Delivery)
}

// HandedBack implements bus.Owner.
func (Owner) HandedBack(contract.Sign) {}

// Fence implements bus.Owner.
func (o Owner) Fence(q contract.FenceQuestion) contract.FenceAnswer {
	if o.Decide == nil {
		a := contract.FenceAnswer{Decision: contract.FenceRun, Delivery: q.At.Delivery}
		for d := range q.At.Delivery - 1 {
			a.Lost = append(a.Lost, d+1)
		}
		return a
	}
	return o.Decide(q)
}

// Alive implements bus.Owner.
func (o Owner) Alive(_ string, s contract.Sign) (fine contract.Heard) {
	if o.Signs != nil {
		o.Signs <- s
	}
	return fine
}

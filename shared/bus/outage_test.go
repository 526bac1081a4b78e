package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/output"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

// outageWait bounds the waits of these tests, which start and kill processes; what they wait for takes a few seconds.
const outageWait = 90 * time.Second

// cluster is the NATS that a test breaks.
type cluster struct {
	nodes []*natstest.Process
	topo  topology.Config
}

func startCluster(tb testing.TB, nodes int, onDisk bool) *cluster {
	tb.Helper()
	c := &cluster{topo: topology.Config{WorkOnDisk: onDisk, Replicas: nodes}}
	if nodes == 1 {
		c.nodes = []*natstest.Process{natstest.NewProcess(tb)}
	} else {
		c.nodes = natstest.NewCluster(tb, nodes)
	}
	c.each(func(p *natstest.Process) { p.Start(tb) })
	return c
}

// each does something to all nodes at the same time.
func (c *cluster) each(do func(*natstest.Process)) {
	var wg sync.WaitGroup
	for _, p := range c.nodes {
		wg.Go(func() { do(p) })
	}
	wg.Wait()
}

func (c *cluster) config(tb testing.TB) bus.Config {
	tb.Helper()
	return bus.Config{URL: natstest.URLs(c.nodes), Name: tb.Name(), Topology: c.topo, Logger: slog.New(slog.DiscardHandler)}
}

func (c *cluster) connect(tb testing.TB) *bus.Bus {
	tb.Helper()
	b, err := bus.Connect(tb.Context(), c.config(tb))
	require.NoError(tb, err)
	tb.Cleanup(func() { disconnect(tb, b) })
	return b
}

func disconnect(tb testing.TB, b *bus.Bus) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	require.NoError(tb, b.Close(ctx))
}

// traffic is what runs over a bus while its server goes and comes back.
type traffic struct {
	worker, client *bus.Bus

	mu       sync.Mutex
	handled  map[string]int
	facts    map[string]int
	follower map[string]string // what a watch makes of the state bucket
}

func startTraffic(t *testing.T, c *cluster) *traffic {
	t.Helper()
	x := &traffic{worker: c.connect(t), client: c.connect(t), handled: map[string]int{}, facts: map[string]int{}, follower: map[string]string{}}
	letRun(t, x.client)
	work, err := x.worker.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 64}, func(_ context.Context, w *bus.Work) {
		x.count(x.handled, w.Request.ID)
		w.Done()
	})
	require.NoError(t, err)
	t.Cleanup(func() { startstoptest.Stop(t, work) })
	facts, err := x.worker.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 64, MaxWait: time.Millisecond},
		func(_ context.Context, batch []bus.Fact) error {
			for _, f := range batch {
				x.count(x.facts, string(f.Data))
			}
			return nil
		})
	require.NoError(t, err)
	t.Cleanup(func() { startstoptest.Stop(t, facts) })
	bucket, err := x.client.Bucket(t.Context(), subject.StateBucket)
	require.NoError(t, err)
	watch, err := bucket.Watch(t.Context(), "*.*", x.observe)
	require.NoError(t, err)
	t.Cleanup(watch.Stop)
	return x
}

func (x *traffic) count(where map[string]int, what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	where[what]++
}

func (x *traffic) observe(e bus.Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e.Deleted {
		delete(x.follower, e.Key)
		return
	}
	x.follower[e.Key] = string(e.Value)
}

func (x *traffic) followed() map[string]string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.follower)
}

// awaitSeen waits until all ids are in one of the maps.
func (x *traffic) awaitSeen(t *testing.T, where map[string]int, ids ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, id := range ids {
			if where[id] == 0 {
				return false
			}
		}
		return true
	}, outageWait, time.Millisecond, "%v", ids)
}

// announce stores a value until the watch shows it. As a dispatcher does, it repeats that before the value expires; the bucket has a leader of its
// own, which may not be elected yet.
func (x *traffic) announce(t *testing.T, state *bus.Bucket, key, value string) {
	t.Helper()
	var stored time.Time
	require.Eventually(t, func() bool {
		if time.Since(stored) > 10*time.Second {
			if _, err := state.Put(t.Context(), key, []byte(value)); err == nil {
				stored = time.Now()
			}
		}
		return x.followed()[key] == value
	}, outageWait, time.Millisecond, "%v", x.followed)
}

// awaitReady waits until both connections say that they are.
func (x *traffic) awaitReady(t *testing.T, want bool) {
	t.Helper()
	require.Eventually(t, func() bool { return x.worker.Ready() == want && x.client.Ready() == want }, outageWait, time.Millisecond)
}

// load publishes until it is told to stop, and tells which requests were taken.
func (x *traffic) load(t *testing.T) (taken func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var publishing sync.WaitGroup
	var mu sync.Mutex
	var ids []string
	for client := range 4 {
		publishing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				req := request(fmt.Sprintf("load-%d-%d", client, n))
				req.StartBy = time.Now().Add(2 * outageWait)
				err := x.client.PublishWork(ctx, req, []byte("{}"))
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("publishing: %v", err)
					}
					return
				}
				mu.Lock()
				ids = append(ids, req.ID)
				mu.Unlock()
			}
		})
	}
	return func() []string {
		cancel()
		publishing.Wait()
		return ids
	}
}

// An outage of NATS heals by itself, however the server ended and wherever it keeps its streams: what was published meanwhile is taken when
// it is back, consumers and watches go on, and whoever asks is told the truth about it.
func TestOutageHeals(t *testing.T) {
	t.Parallel()
	stopped, killed := (*natstest.Process).Stop, (*natstest.Process).Kill
	tests := map[string]struct {
		nodes  int
		onDisk bool
		end    func(*natstest.Process)
		back   int // nodes that come back
	}{
		"one server, in memory, stopped":        {1, false, stopped, 1},
		"one server, in memory, killed":         {1, false, killed, 1},
		"one server, on disk, stopped":          {1, true, stopped, 1},
		"one server, on disk, killed":           {1, true, killed, 1},
		"cluster, in memory, killed":            {3, false, killed, 3},
		"cluster, on disk, stopped":             {3, true, stopped, 3},
		"cluster, on disk, one is not repaired": {3, true, killed, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, tt.nodes, tt.onDisk)
			x := startTraffic(t, c)
			state, err := x.worker.Bucket(t.Context(), subject.StateBucket)
			require.NoError(t, err)
			_, err = state.Put(t.Context(), "dispatcher.old", []byte("1"))
			require.NoError(t, err)
			x.awaitReady(t, true)
			taken := x.load(t)
			x.awaitSeen(t, x.handled, "load-0-9", "load-3-9")
			if tt.nodes > 1 {
				c.awaitCopies(t)
			}

			interrupted := x.worker.Interrupted()
			c.each(tt.end)
			x.awaitReady(t, false)
			fact := make(chan error, 1)
			go func() { fact <- x.client.PublishFact(t.Context(), subject.UsageRecorded, "", []byte("meanwhile")) }()
			c.nodes = c.nodes[:tt.back]
			c.each(func(p *natstest.Process) { p.Start(t) })
			await.Value(t, interrupted)
			x.awaitReady(t, true)
			require.NoError(t, x.client.PublishWork(t.Context(), request("after"), []byte("{}")))
			x.awaitSeen(t, x.handled, "after")

			require.NoError(t, await.Value(t, fact))
			x.awaitSeen(t, x.facts, "meanwhile")
			x.announce(t, state, "dispatcher.new", "2")
			if tt.nodes == 1 || !tt.onDisk { // the bucket was in memory
				require.Eventually(t, func() bool { return x.followed()["dispatcher.old"] == "" }, outageWait, time.Millisecond)
			}
			ids := taken()
			x.awaitSeen(t, x.handled, ids[len(ids)-1])
			if tt.onDisk {
				x.awaitSeen(t, x.handled, ids...)
			}
		})
	}
}

// The number of a message that was in memory is that of another one after a restart. What becomes of the first says nothing of the second.
func TestLateAcknowledgementHitsNobody(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, false)
	b := c.connect(t)
	begun, finish := make(chan string, 2), map[string]chan struct{}{"before": make(chan struct{}), "after": make(chan struct{})}
	ended := make(chan string, 2)
	consume(t, b, bus.WorkConfig{Consumer: topology.Dispatcher}, func(ctx context.Context, w *bus.Work) {
		begun <- w.Request.ID
		select {
		case <-finish[w.Request.ID]:
		case <-ctx.Done():
		}
		w.Done()
		ended <- w.Request.ID
	})
	require.NoError(t, b.PublishWork(t.Context(), request("before"), []byte("{}")))
	require.Equal(t, "before", await.Value(t, begun))
	interrupted := b.Interrupted()
	c.nodes[0].Kill()
	c.nodes[0].Start(t)
	await.Value(t, interrupted)
	require.NoError(t, b.PublishWork(t.Context(), request("after"), []byte("{}")))
	require.Equal(t, "after", await.Value(t, begun))
	stream, err := c.raw(t).Stream(t.Context(), subject.WorkStream)
	require.NoError(t, err)
	close(finish["before"])
	require.Equal(t, "before", await.Value(t, ended))
	require.NoError(t, b.PublishFact(t.Context(), subject.UsageRecorded, "", nil)) // on the same connection, so that an acknowledgement is there by now
	stored, err := stream.GetMsg(t.Context(), 1)
	require.NoError(t, err, "nobody has finished with it")
	require.Equal(t, "after", stored.Header.Get(contract.HeaderRequestID))
	close(finish["after"])
	require.Equal(t, "after", await.Value(t, ended))
	require.Eventually(t, func() bool {
		_, err := stream.GetMsg(t.Context(), 1)
		return errors.Is(err, jetstream.ErrMsgNotFound)
	}, testWait, time.Millisecond)
}

// raw gives a connection that does nothing by itself.
func (c *cluster) raw(tb testing.TB) jetstream.JetStream {
	tb.Helper()
	nc, err := nats.Connect(natstest.URLs(c.nodes), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	require.NoError(tb, err)
	tb.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(tb, err)
	return js
}

// awaitCopies waits until every node has all of every stream and consumer. One that lacks an idle consumer could not help to elect its leader.
func (c *cluster) awaitCopies(tb testing.TB) {
	tb.Helper()
	js := c.raw(tb)
	copied := func(info *jetstream.ClusterInfo) bool {
		return info != nil && len(info.Replicas) == len(c.nodes)-1 &&
			!slices.ContainsFunc(info.Replicas, func(p *jetstream.PeerInfo) bool { return !p.Current || p.Offline })
	}
	require.Eventually(tb, func() bool {
		streams := 0
		for info := range js.ListStreams(tb.Context()).Info() {
			if !copied(info.Cluster) {
				return false
			}
			streams++
		}
		for stream, list := range c.topo.Consumers() {
			for _, want := range list {
				ctx, cancel := context.WithTimeout(tb.Context(), testWait)
				cons, err := js.Consumer(ctx, stream, want.Durable)
				cancel()
				if err != nil || !copied(cons.CachedInfo().Cluster) {
					return false
				}
			}
		}
		return streams == len(c.topo.Streams())+len(c.topo.Buckets())+1
	}, outageWait, 100*time.Millisecond)
}

// A cluster that loses one node after the other loses no request, also when it keeps them in memory.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, false)
	x := startTraffic(t, c)
	state, err := x.worker.Bucket(t.Context(), subject.StateBucket)
	require.NoError(t, err)
	taken := x.load(t)
	for i, node := range c.nodes {
		c.awaitCopies(t)
		node.Kill()
		begun := time.Now()
		id := fmt.Sprint("without-", i)
		req := request(id)
		req.StartBy = time.Now().Add(outageWait)
		require.NoError(t, x.client.PublishWork(t.Context(), req, []byte("{}")))
		x.awaitSeen(t, x.handled, id)
		t.Logf("works %s after node %d was killed", time.Since(begun).Round(time.Millisecond), i)
		x.awaitReady(t, true)
		key := fmt.Sprint("dispatcher.", i)
		x.announce(t, state, key, id)
		t.Logf("is followed after %s", time.Since(begun).Round(time.Millisecond))
		node.Start(t)
	}
	x.awaitSeen(t, x.handled, taken()...)
}

// Eight services that start at once on an empty cluster, before it is there, get ready. That they wait is in the log from the start.
func TestManyStartOnAnEmptyCluster(t *testing.T) {
	t.Parallel()
	const services = 8
	c := &cluster{nodes: natstest.NewCluster(t, 3), topo: topology.Config{Replicas: 3}}
	logs := make([]output.Buffer, services)
	var connecting sync.WaitGroup
	for i := range logs {
		connecting.Go(func() {
			cfg := c.config(t)
			cfg.Logger = slog.New(slog.NewTextHandler(&logs[i], nil))
			b, err := bus.Connect(t.Context(), cfg)
			if err != nil {
				t.Errorf("service %d: %v", i, err)
				return
			}
			disconnect(t, b)
		})
	}
	for i := range logs {
		require.Eventually(t, func() bool { return strings.Contains(logs[i].String(), "NATS can't be reached") }, testWait, time.Millisecond)
	}
	begun := time.Now()
	c.each(func(p *natstest.Process) { p.Start(t) })
	connecting.Wait()
	t.Logf("%d services are ready %s after the servers listen", services, time.Since(begun).Round(time.Millisecond))
	require.NotContains(t, logs[0].String(), "drift")
}

// What never will work is an error at once.
func TestConnectFailsForGood(t *testing.T) {
	t.Parallel()
	_, err := bus.Connect(t.Context(), bus.Config{
		InProcess: natstest.Start(t), Topology: topology.Config{Replicas: 3}, Logger: slog.New(slog.DiscardHandler),
	})
	require.ErrorContains(t, err, "replicas")
}

// The wait for a server that does not come ends with its context, and shows no password.
func TestConnectIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	var log output.Buffer
	connected := make(chan error, 1)
	go func() {
		_, err := bus.Connect(ctx, bus.Config{URL: "nats://user:secret@127.0.0.1:1,nats://127.0.0.1:2", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		connected <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "127.0.0.1:1,nats://127.0.0.1:2") }, testWait, time.Millisecond)
	stopped := errors.New("told to stop")
	cancel(stopped)
	err := await.Value(t, connected)
	require.ErrorIs(t, err, stopped)
	require.NotContains(t, log.String()+err.Error(), "secret")
}

// What somebody removed from a server that goes on is made again.
func TestRemovedStreamsComeBack(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, true)
	x := startTraffic(t, c)
	state, err := x.worker.Bucket(t.Context(), subject.StateBucket)
	require.NoError(t, err)
	_, err = state.Put(t.Context(), "dispatcher.old", []byte("1"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(x.followed()) == 1 }, testWait, time.Millisecond)
	js := c.raw(t)
	for _, stream := range []string{"KV_" + subject.StateBucket, subject.FactsStream, subject.DeadStream, subject.WorkStream} {
		require.NoError(t, js.DeleteStream(t.Context(), stream))
		require.Eventually(t, func() bool {
			_, err := js.Stream(t.Context(), stream)
			return err == nil
		}, testWait, 10*time.Millisecond, stream)
	}
	require.Eventually(t, func() bool { // the consumer comes back a moment later
		return js.DeleteConsumer(t.Context(), subject.WorkStream, topology.Dispatcher) == nil
	}, testWait, time.Millisecond)
	require.NoError(t, x.client.PublishWork(t.Context(), request("after"), []byte("{}")))
	x.awaitSeen(t, x.handled, "after")
	require.NoError(t, x.client.PublishFact(t.Context(), subject.UsageRecorded, "", []byte("after")))
	x.awaitSeen(t, x.facts, "after")
	require.Eventually(t, func() bool { return len(x.followed()) == 0 }, testWait, time.Millisecond, "what vanished with the bucket is gone")
	x.awaitReady(t, true)
}

// Delivery rule 8: a service stops in time although the server is away.
func TestStopWithoutAServer(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, false)
	b, err := bus.Connect(t.Context(), c.config(t))
	require.NoError(t, err)
	work, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 4}, func(_ context.Context, w *bus.Work) { w.Done() })
	require.NoError(t, err)
	facts, err := b.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter}, func(context.Context, []bus.Fact) error { return nil })
	require.NoError(t, err)
	state, err := b.Bucket(t.Context(), subject.StateBucket)
	require.NoError(t, err)
	watch, err := state.Watch(t.Context(), ">", func(bus.Entry) {})
	require.NoError(t, err)
	c.nodes[0].Kill()
	require.Eventually(t, func() bool { return !b.Ready() }, testWait, time.Millisecond)
	publishing := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { publishing <- b.PublishWork(ctx, request("r"), []byte("{}")) }()
	cancel()
	require.ErrorIs(t, await.Value(t, publishing), context.Canceled)
	startstoptest.Stop(t, work)
	startstoptest.Stop(t, facts)
	watch.Stop()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.NoError(t, b.Close(short))
}

// a recorded answer goes on after an outage of NATS where it was, for its worker and for its readers, and nothing of it is there twice.
func TestRecordingGoesOnAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string]int{"one server": 1, "cluster": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, nodes, false)
			client := c.connect(t)
			d := startDispatcher(t, c.connect(t))
			r := background("r")
			r.StartBy = time.Now().Add(time.Hour)
			begin(t, client, r)
			require.NoError(t, client.Record(t.Context(), background("waits"), nil))
			w := await.Value(t, d.got)
			w.say(t, "before ")
			read := reading(t, client, "r")
			c.each((*natstest.Process).Kill)
			said := make(chan error, 1)
			go func() { said <- errors.Join(w.reply.Data(t.Context(), []byte("after ")), w.reply.Flush()) }()
			c.each(func(p *natstest.Process) { p.Start(t) })
			require.NoError(t, await.Value(t, said))
			w.finish(t)
			require.Equal(t, "before after success", await.Value(t, read))
			require.Equal(t, bus.RecordingQueued, stateOf(t, client, "waits"))
		})
	}
}

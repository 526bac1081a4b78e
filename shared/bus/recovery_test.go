package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

// BenchmarkRecovery measures how long it takes until the gateway works again after an outage of NATS, and how much of that is NATS's own time: until it has
// a leader for its cluster (meta-s) and for each stream and consumer (leaders-s). All are counted from the moment when the servers listen again, or, when
// only one of them went and stays away, from its end; own-s is what the gateway takes once NATS is complete.
func BenchmarkRecovery(b *testing.B) {
	for _, bb := range []struct {
		name   string
		nodes  int
		onDisk bool
		leader bool // only the server goes that leads the stream of requests
	}{
		{"server/memory", 1, false, false},
		{"server/disk", 1, true, false},
		{"cluster/memory", 3, false, false},
		{"cluster/disk", 3, true, false},
		{"leader/memory", 3, false, true},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c := startCluster(b, bb.nodes, bb.onDisk)
			service := c.connect(b)
			letRun(b, service)
			handled := make(chan string, 64)
			work, err := service.ConsumeWork(b.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 4}, func(_ context.Context, w *bus.Work) {
				w.Done()
				handled <- w.Request.ID
			})
			require.NoError(b, err)
			b.Cleanup(func() { startstoptest.Stop(b, work) })
			state, err := service.Bucket(b.Context(), subject.StateBucket)
			require.NoError(b, err)
			watch, err := state.Watch(b.Context(), "*.*", func(bus.Entry) {})
			require.NoError(b, err)
			b.Cleanup(watch.Stop)
			var sum struct{ meta, leaders, ready, request time.Duration }
			rounds := 0
			for b.Loop() {
				interrupted := service.Interrupted()
				gone := c
				if bb.leader {
					gone = &cluster{nodes: []*natstest.Process{c.leader(b)}}
				}
				gone.each((*natstest.Process).Kill)
				if !bb.leader {
					gone.each(func(p *natstest.Process) { p.Start(b) })
				}
				begun := time.Now()
				var meta, leaders time.Duration
				var asking sync.WaitGroup
				asking.Go(func() {
					c.awaitAnswer(b, "$JS.API.INFO")
					meta = time.Since(begun)
				})
				asking.Go(func() {
					c.awaitLeaders(b)
					leaders = time.Since(begun)
				})
				if !bb.leader {
					<-interrupted
				}
				require.Eventually(b, service.Ready, outageWait, time.Millisecond)
				ready := time.Since(begun)
				req := request(fmt.Sprint("after-", rounds, bb.name))
				req.StartBy = time.Now().Add(outageWait)
				require.NoError(b, service.PublishWork(b.Context(), req, []byte("{}")))
				for id := range handled {
					if id == req.ID {
						break
					}
				}
				sum.request += time.Since(begun)
				asking.Wait()
				sum.meta, sum.leaders, sum.ready = sum.meta+meta, sum.leaders+leaders, sum.ready+ready
				rounds++
				if bb.leader {
					gone.nodes[0].Start(b)
					c.awaitCopies(b)
					require.Eventually(b, service.Ready, outageWait, time.Millisecond)
				}
			}
			mean := func(d time.Duration, unit string) { b.ReportMetric(d.Seconds()/float64(rounds), unit) }
			mean(sum.meta, "meta-s")
			mean(sum.leaders, "leaders-s")
			mean(sum.ready, "ready-s")
			mean(sum.request, "request-s")
			mean(sum.request-sum.leaders, "own-s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// leader gives the server that leads the stream of requests.
func (c *cluster) leader(tb testing.TB) *natstest.Process {
	tb.Helper()
	s, err := c.raw(tb).Stream(tb.Context(), subject.WorkStream)
	require.NoError(tb, err)
	for i, node := range c.nodes {
		if s.CachedInfo().Cluster.Leader == fmt.Sprint("node", i) {
			return node
		}
	}
	tb.Fatal("nobody leads")
	return nil
}

// awaitLeaders waits until everything on the server has a leader.
func (c *cluster) awaitLeaders(tb testing.TB) {
	tb.Helper()
	var asking sync.WaitGroup
	ask := func(subj string) { asking.Go(func() { c.awaitAnswer(tb, subj) }) }
	for _, s := range c.topo.Streams() {
		ask("$JS.API.STREAM.INFO." + s.Name)
	}
	for _, s := range c.topo.Buckets() {
		ask("$JS.API.STREAM.INFO.KV_" + s.Bucket)
	}
	ask("$JS.API.STREAM.INFO.OBJ_" + c.topo.Bodies().Bucket)
	for stream, list := range c.topo.Consumers() {
		for _, cons := range list {
			ask("$JS.API.CONSUMER.INFO." + stream + "." + cons.Durable)
		}
	}
	asking.Wait()
}

// awaitAnswer asks every twenty milliseconds until something is answered without an error.
func (c *cluster) awaitAnswer(tb testing.TB, subj string) {
	tb.Helper()
	nc, err := nats.Connect(natstest.URLs(c.nodes), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		tb.Errorf("connecting: %v", err)
		return
	}
	defer nc.Close()
	answered := make(chan struct{})
	inbox := nc.NewInbox()
	if _, err := nc.Subscribe(inbox, func(m *nats.Msg) {
		var answer struct {
			Error   *struct{}
			Cluster *struct{ Leader string }
		}
		if len(m.Data) > 0 && json.Unmarshal(m.Data, &answer) == nil && answer.Error == nil && (answer.Cluster == nil || answer.Cluster.Leader != "") {
			select {
			case answered <- struct{}{}:
			default:
			}
		}
	}); err != nil {
		tb.Errorf("subscribing: %v", err)
		return
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	late := time.After(outageWait)
	for {
		select {
		case <-answered:
			return
		case <-late:
			tb.Errorf("%s is not answered", subj)
			return
		case <-ticker.C:
			if nc.IsConnected() {
				_ = nc.PublishRequest(subj, inbox, nil)
			}
		}
	}
}

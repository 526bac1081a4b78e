//go:build e2e

package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/natstest"
)

const (
	soakTime     = 30 * time.Minute // unless SOAK says something else
	capacityTime = 15 * time.Second // in which the capacity is measured
	samples      = 120              // that are taken in all
)

// at half of its capacity for a long time, a gateway answers everything, and nothing grows: the second half of the time is judged by its slope.
func TestSoak(t *testing.T) {
	lasts := soakTime
	if text := os.Getenv("SOAK"); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err, "SOAK")
	}
	seed := setting(t, "CHAOS_SEED", rand.Uint64()%1e6)
	x := newDistributed(t, "127.0.0.1")
	p := x.runProcesses(t)
	x.upstream.Handle(func(r fakellm.Request) fakellm.Answer { return replyTo(r, time.Millisecond) })
	rate := x.capacity(t, seed) / 2
	t.Logf("CHAOS_SEED=%d, half of the capacity is %.0f requests a second", seed, rate)

	l := x.newLoad(seed, apart)
	ticker := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer ticker.Stop()
	l.due, l.forget = ticker.C, true
	l.start(t)
	all := map[string]series{}
	sampling := time.NewTicker(lasts / samples)
	defer sampling.Stop()
	for range samples {
		<-sampling.C
		x.upstream.Forget()
		for name, value := range p.sample(t) {
			all[name] = append(all[name], value)
		}
	}
	for _, r := range l.finish() {
		t.Errorf("q%d, %s of %s, stream %t, session %q: %v", r.n, r.surface, r.model, r.stream, r.session, r.err)
	}
	t.Logf("%s at %.0f requests a second, %d answers, seed %d\n\n%s", lasts, rate, l.done, seed, growths(all, lasts))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if g := all[name].growth(limitOf(name)); g.grows {
			t.Errorf("%s grows: %s", name, g)
		}
	}
	x.awaitReady(t)
	x.checkIdle(t)
}

// capacity is how many requests are answered in a second when the clients ask as fast as they can.
func (x *distributed) capacity(t *testing.T, seed uint64) float64 {
	t.Helper()
	l := x.newLoad(seed, 0)
	l.forget = true
	l.start(t)
	l.await(t, before) // connections are made, lists of models are known
	begun := time.Now()
	l.mu.Lock()
	done := l.done
	l.mu.Unlock()
	<-time.After(capacityTime)
	l.mu.Lock()
	done = l.done - done
	l.mu.Unlock()
	rate := float64(done) / time.Since(begun).Seconds()
	require.Empty(t, l.finish())
	return rate
}

// sample takes what is measured now: of each process and of each stream.
func (s *processes) sample(t *testing.T) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	count := map[string]int{}
	for _, m := range s.members {
		count[m.service]++
		for metric, value := range m.measure(t) {
			values[fmt.Sprintf("%s %d, %s", m.service, count[m.service], metric)] = value
		}
	}
	nc, err := nats.Connect(natstest.URLs(s.nodes))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	streams := js.ListStreams(ctx)
	for stream := range streams.Info() {
		if stream.Config.Name == subject.FactsStream { // keeps what happened for a week; what must not grow is what nobody has stored yet
			c, err := js.Consumer(ctx, subject.FactsStream, "session-writer")
			require.NoError(t, err)
			values["facts, not stored yet"] = float64(c.CachedInfo().NumPending) + float64(c.CachedInfo().NumAckPending)
			continue
		}
		values[stream.Config.Name+", KiB"] = float64(stream.State.Bytes) / 1024
	}
	require.NoError(t, streams.Err())
	return values
}

// measured are the metrics of a process, with the unit in which they are shown.
var measured = map[string]struct {
	name string
	unit float64
}{
	"process_resident_memory_bytes": {"memory, MiB", 1 << 20},
	"go_goroutines":                 {"goroutines", 1},
	"process_open_fds":              {"file descriptors", 1},
}

// measure reads the metrics of a process.
func (m *member) measure(t *testing.T) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for line := range strings.Lines(get(t, "http://"+m.health+"/metrics")) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if metric, ok := measured[name]; ok {
			var value float64
			_, err := fmt.Sscan(text, &value)
			require.NoError(t, err, line)
			values[metric.name] = value / metric.unit
		}
	}
	require.Len(t, values, len(measured), m.service)
	return values
}

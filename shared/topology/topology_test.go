package topology_test

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

func connect(t *testing.T, s *server.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func TestEnsureCreatesEverything(t *testing.T) {
	t.Parallel()
	js := connect(t, natstest.Start(t))
	cfg := topology.Config{}
	require.NoError(t, topology.Ensure(t.Context(), js, cfg, quiet))
	for _, want := range cfg.Streams() {
		s, err := js.Stream(t.Context(), want.Name)
		require.NoError(t, err)
		got := s.CachedInfo().Config
		require.Equal(t, want.Subjects, got.Subjects)
		require.Equal(t, want.Retention, got.Retention)
		require.Equal(t, want.Discard, got.Discard)
		require.Equal(t, want.Storage, got.Storage)
		require.Positive(t, got.MaxBytes, "nothing is unbounded")
		require.Positive(t, got.MaxAge)
		for _, c := range cfg.Consumers()[want.Name] {
			got, err := js.Consumer(t.Context(), want.Name, c.Durable)
			require.NoError(t, err)
			require.Equal(t, jetstream.AckExplicitPolicy, got.CachedInfo().Config.AckPolicy)
			require.Equal(t, c.AckWait, got.CachedInfo().Config.AckWait)
		}
	}
	for _, want := range cfg.Buckets() {
		kv, err := js.KeyValue(t.Context(), want.Bucket)
		require.NoError(t, err)
		status, err := kv.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, want.TTL, status.TTL())
	}
	_, err := js.ObjectStore(t.Context(), subject.BodiesBucket)
	require.NoError(t, err)
}

// Several services prepare the streams at the same time.
func TestEnsureIsIdempotentAndConcurrent(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t)
	var preparing sync.WaitGroup
	for range 5 {
		js := connect(t, s)
		preparing.Go(func() {
			for range 2 {
				if err := topology.Ensure(t.Context(), js, topology.Config{}, quiet); err != nil {
					t.Errorf("preparing: %v", err)
				}
			}
		})
	}
	preparing.Wait()
}

// A restart must not take messages from the streams.
func TestEnsureKeepsMessages(t *testing.T) {
	t.Parallel()
	js := connect(t, natstest.Start(t))
	require.NoError(t, topology.Ensure(t.Context(), js, topology.Config{}, quiet))
	_, err := js.Publish(t.Context(), subject.UsageRecorded, []byte("x"))
	require.NoError(t, err)
	require.NoError(t, topology.Ensure(t.Context(), js, topology.Config{MaxInFlight: 7}, quiet))
	s, err := js.Stream(t.Context(), subject.FactsStream)
	require.NoError(t, err)
	require.Equal(t, uint64(1), s.CachedInfo().State.Msgs)
	c, err := js.Consumer(t.Context(), subject.WorkStream, topology.Analyzer)
	require.NoError(t, err)
	require.Equal(t, 7, c.CachedInfo().Config.MaxAckPending, "what may change while running is changed")
}

// What can't be changed while running is reported and left alone.
func TestDriftIsReported(t *testing.T) {
	t.Parallel()
	js := connect(t, natstest.Start(t))
	require.NoError(t, topology.Ensure(t.Context(), js, topology.Config{}, quiet))
	var out bytes.Buffer
	require.NoError(t, topology.Ensure(t.Context(), js, topology.Config{WorkOnDisk: true}, slog.New(slog.NewTextHandler(&out, nil))))
	require.Contains(t, out.String(), "topology drift")
	require.Contains(t, out.String(), subject.WorkStream)
	s, err := js.Stream(t.Context(), subject.WorkStream)
	require.NoError(t, err)
	require.Equal(t, jetstream.MemoryStorage, s.CachedInfo().Config.Storage)
}

func TestEnsureFailsWithoutRoom(t *testing.T) {
	t.Parallel()
	js := connect(t, natstest.Start(t))
	err := topology.Ensure(t.Context(), js, topology.Config{Replicas: 3}, quiet)
	require.ErrorContains(t, err, subject.WorkStream, "one server can't hold three copies")
	require.ErrorContains(t, err, subject.SlotsBucket, "every problem is named")
}

// Limits that belong together.
func TestLimitsFitTogether(t *testing.T) {
	t.Parallel()
	cfg := topology.Config{}
	for stream, consumers := range cfg.Consumers() {
		for _, c := range consumers {
			require.Equal(t, -1, c.MaxDeliver, "%s: the stages decide about poison, the server would lose it silently", c.Durable)
			require.NotContains(t, c.Durable, ".")
			require.NotEmpty(t, stream)
		}
	}
	for _, s := range cfg.Streams() {
		if s.Name == subject.WorkStream {
			require.Greater(t, s.Duplicates, 2*topology.AckWait, "a redelivered message must still be known as forwarded")
			require.Equal(t, jetstream.DiscardNew, s.Discard, "a full queue refuses, it does not forget")
			require.Greater(t, s.MaxAge, time.Minute)
		}
		require.NotContains(t, s.Name, " ")
	}
}

// what a service creates are streams, buckets and its own consumers; what is there is altered by the session writer alone.
func TestWhatServicesCreateAndAlter(t *testing.T) {
	t.Parallel()
	js := connect(t, natstest.Start(t))
	consumers := func() (names []string) {
		for _, stream := range []string{subject.WorkStream, subject.FactsStream} {
			s, err := js.Stream(t.Context(), stream)
			require.NoError(t, err)
			for name := range s.ConsumerNames(t.Context()).Name() {
				names = append(names, name)
			}
		}
		return names
	}
	require.NoError(t, topology.Ensure(t.Context(), js, topology.Config{Service: "ingress"}, quiet))
	require.Empty(t, consumers())
	require.NoError(t, topology.Look(t.Context(), js, topology.Config{}), "streams and buckets are there")

	age := func() time.Duration {
		kv, err := js.KeyValue(t.Context(), subject.WebCacheBucket)
		require.NoError(t, err)
		status, err := kv.Status(t.Context())
		require.NoError(t, err)
		return status.TTL()
	}
	require.NoError(t, topology.Ensure(t.Context(), js, topology.Config{Service: topology.Enricher, WebCacheTTL: time.Hour}, quiet))
	require.Equal(t, []string{topology.Enricher}, consumers())
	require.Equal(t, 24*time.Hour, age())
	require.NoError(t, topology.Ensure(t.Context(), js, topology.Config{Service: topology.SessionWriter, WebCacheTTL: time.Hour}, quiet))
	require.ElementsMatch(t, []string{topology.Enricher, topology.Session, topology.SessionWriter}, consumers())
	require.Equal(t, time.Hour, age())
}

package broker_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/broker"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/topology"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func start(t *testing.T, cfg broker.Config) *broker.Server {
	t.Helper()
	s := broker.New(cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

func connect(t *testing.T, cfg bus.Config) *bus.Bus {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	b, err := bus.Connect(t.Context(), cfg)
	require.NoError(t, err)
	return b
}

func request(id string) *contract.Request {
	return &contract.Request{ID: id, Ingress: "i", Slip: contract.Slip{contract.StageEnriched}}
}

func TestServesConnectionsOfTheProcessOnly(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Config{StoreDir: t.TempDir()})
	b := connect(t, bus.Config{InProcess: s})
	require.NoError(t, b.PublishWork(t.Context(), request("r"), []byte("{}")))
	require.NoError(t, b.Close(t.Context()))
	require.Nil(t, s.Addr())
}

func TestListens(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Config{StoreDir: t.TempDir(), Listen: "127.0.0.1:0"})
	b := connect(t, bus.Config{URL: "nats://" + s.Addr().String()})
	require.True(t, b.Ready())
	require.NoError(t, b.Close(t.Context()))
}

// What was stored in files is there after a restart.
func TestKeepsFactsOverARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, broker.Config{StoreDir: dir})
	b := connect(t, bus.Config{InProcess: first})
	require.NoError(t, b.PublishFact(t.Context(), subject.UsageRecorded, "id", []byte("kept")))
	require.NoError(t, b.Close(t.Context()))
	require.NoError(t, first.Stop(t.Context()))

	b = connect(t, bus.Config{InProcess: start(t, broker.Config{StoreDir: dir})})
	got := make(chan string, 1)
	c, err := b.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 1}, func(_ context.Context, f []bus.Fact) error {
		got <- string(f[0].Data)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "kept", <-got)
	require.NoError(t, c.Stop(t.Context()))
	require.NoError(t, b.Close(t.Context()))
}

func TestStoreIsUsedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, broker.Config{StoreDir: dir})
	second := broker.New(broker.Config{StoreDir: dir}, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, second.Start(t.Context()), broker.ErrInUse)
	require.NoError(t, second.Stop(t.Context()), "a server that never started can be stopped")
	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, second.Start(t.Context()), "the directory is free again")
	require.NoError(t, second.Stop(t.Context()))
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	blocked := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(blocked, "jetstream"), []byte("x"), 0o600))
	tests := map[string]struct {
		cfg  broker.Config
		text string
	}{
		"store is a file":      {broker.Config{StoreDir: file}, file},
		"store is unusable":    {broker.Config{StoreDir: blocked}, blocked},
		"port is taken":        {broker.Config{StoreDir: t.TempDir(), Listen: taken.Addr().String()}, taken.Addr().String()},
		"address without port": {broker.Config{StoreDir: t.TempDir(), Listen: "localhost"}, "localhost"},
		"port is no number":    {broker.Config{StoreDir: t.TempDir(), Listen: "localhost:nats"}, "nats"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := broker.New(tt.cfg, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, s.Start(t.Context()), tt.text)
		})
	}
}

// A damaged stream must not keep the gateway from starting: its messages are lost, the stream is made anew.
func TestDamagedStream(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, broker.Config{StoreDir: dir})
	b := connect(t, bus.Config{InProcess: s})
	require.NoError(t, b.PublishFact(t.Context(), subject.UsageRecorded, "id", []byte("lost")))
	require.NoError(t, b.Close(t.Context()))
	require.NoError(t, s.Stop(t.Context()))
	metas, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", subject.FactsStream, "meta.inf"))
	require.NoError(t, err)
	require.Len(t, metas, 1)
	require.NoError(t, os.WriteFile(metas[0], []byte("garbage"), 0o600))

	b = connect(t, bus.Config{InProcess: start(t, broker.Config{StoreDir: dir})})
	require.NoError(t, b.PublishFact(t.Context(), subject.UsageRecorded, "id", []byte("new")))
	require.NoError(t, b.Close(t.Context()))
}

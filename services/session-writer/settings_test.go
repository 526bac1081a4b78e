package sessionwriter

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/settings"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/pgtest"
)

// bucketOf gives what the services are told of settings.
func bucketOf(t *testing.T, b *bus.Bus) map[string]json.RawMessage {
	t.Helper()
	bucket, err := b.Bucket(t.Context(), subject.SettingsBucket)
	require.NoError(t, err)
	e, err := bucket.Get(t.Context(), settings.Key)
	if err != nil {
		require.ErrorIs(t, err, bus.ErrKeyNotFound)
		return nil
	}
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(e.Value, &all))
	return all
}

// what is stored is told at once, also by a writer that starts, and to a NATS that knows nothing of it or something else: the database is the truth.
func TestSettingsAreTold(t *testing.T) {
	t.Parallel()
	address := sqliteAddress(t)
	first := started(t, address)
	stored := ask(t, first, query.PutSettings, query.ChangedSettings{Set: map[string]query.Document{"server.locale": `"ko"`, "log.communication": `true`}})
	require.Equal(t, query.Success, stored.Status)
	require.NotZero(t, stored.Revision)
	want := map[string]json.RawMessage{"server.locale": json.RawMessage(`"ko"`), "log.communication": json.RawMessage(`true`)}
	require.Equal(t, want, bucketOf(t, first.bus))
	again := ask(t, first, query.PutSettings, query.ChangedSettings{Set: map[string]query.Document{"server.locale": `"ko"`}})
	require.Equal(t, stored.Revision, again.Revision, "nothing has changed")
	ask(t, first, query.PutSettings, query.ChangedSettings{Clear: []string{"log.communication", "unknown"}})
	delete(want, "log.communication")
	require.Equal(t, want, bucketOf(t, first.bus))
	stop(t, first.Service)

	second := setup(t, address)
	bucket, err := second.bus.Bucket(t.Context(), subject.SettingsBucket)
	require.NoError(t, err)
	_, err = bucket.Put(t.Context(), settings.Key, []byte(`{"server.locale":"en"}`))
	require.NoError(t, err)
	require.NoError(t, second.Start(t.Context()))
	await.True(t, func() bool { return string(bucketOf(t, second.bus)["server.locale"]) == `"ko"` })
}

// a change that can't be stored is refused, and nothing is told.
func TestSettingsWithoutDatabase(t *testing.T) {
	t.Parallel()
	srv, database := natstest.Start(t), pgtest.NewServer(t)
	database.Stop()
	newWriter(t, srv, database.Address())
	b := bustest.Connect(t, srv)
	_, err := query.PutSettings.Ask(t.Context(), b, query.ChangedSettings{Set: map[string]query.Document{"server.locale": `"ko"`}})
	require.ErrorIs(t, err, fault.New(fault.Unavailable, ""))
	require.Nil(t, bucketOf(t, b))
}

// Several writers and operators at once: in the end the services are told what the database has.
func TestSettingsOfSeveralWriters(t *testing.T) {
	t.Parallel()
	srv, address := natstest.Start(t), pgtest.New(t)
	for i := range 2 {
		s, err := New(Config{ID: fmt.Sprint("w", i), Database: address}, bustest.Connect(t, srv), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		require.NoError(t, err)
		require.NoError(t, s.Start(t.Context()))
		t.Cleanup(func() { stop(t, s) })
	}
	b := bustest.Connect(t, srv)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 5 {
				_, err := query.PutSettings.Ask(t.Context(), b, query.ChangedSettings{
					Set: map[string]query.Document{"shared": query.Document(strconv.Itoa(i)), fmt.Sprint("own-", i): query.Document(strconv.Itoa(n))},
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	told := bucketOf(t, b)
	for i := range 8 {
		require.Equal(t, "4", string(told[fmt.Sprint("own-", i)]))
	}
	ask := query.ChangedSettings{Set: map[string]query.Document{"shared": query.Document(told["shared"])}}
	before, err := query.PutSettings.Ask(t.Context(), b, ask)
	require.NoError(t, err)
	require.Equal(t, told, bucketOf(t, b), "the database says the same")
	require.NotZero(t, before.Revision)
}

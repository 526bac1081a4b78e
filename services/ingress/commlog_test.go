package ingress_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/dispatcherhealth"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
)

// the log is that of all dispatchers, newest first, and clearing one that does not answer is no success.
func TestCommunicationLogOfAllDispatchers(t *testing.T) {
	t.Parallel()
	g := settled(t, "log: {communication: true}")
	bucket, err := g.worker.Bucket(t.Context(), subject.StateBucket)
	require.NoError(t, err)
	show := func(id string) {
		state, err := json.Marshal(contract.DispatcherState{Providers: map[string]contract.ProviderState{"p": {}}})
		require.NoError(t, err)
		_, err = bucket.Put(t.Context(), dispatcherhealth.Key(id), state)
		require.NoError(t, err)
	}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for i, id := range []string{"d1", "d2"} {
		show(id)
		h := query.Handlers{}
		query.GetCommLog.Handle(h, func(context.Context, query.CommLogs) (list []query.CommEntry, err error) {
			for n := range 300 {
				list = append(list, query.CommEntry{At: query.Time{Time: at.Add(-time.Duration(2*n+i) * time.Second)}, Provider: id})
			}
			return list, nil
		})
		query.ClearCommLog.Handle(h, func(context.Context, query.None) (query.Done, error) { return query.Done{Status: query.Success}, nil })
		s, err := g.worker.Serve(t.Context(), bus.QueryConfig{Service: query.Dispatcher, Instance: id, Handlers: h})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	}
	var a answer
	await.True(t, func() bool {
		a = g.admin(http.MethodGet, "comm-logs", "")
		return gjson.Get(a.body, "entries.1.provider").Str == "d2"
	})
	require.True(t, gjson.Get(a.body, "enabled").Bool())
	require.Equal(t, int64(200), gjson.Get(a.body, "entries.#").Int())
	require.Equal(t, "d1", gjson.Get(a.body, "entries.0.provider").Str)
	require.Equal(t, "2026-05-01T12:00:00.000Z", gjson.Get(a.body, "entries.0.ts").Str)
	require.Equal(t, int64(600), gjson.Get(g.admin(http.MethodGet, "comm-logs?limit=1000", "").body, "entries.#").Int())
	require.Equal(t, int64(1), gjson.Get(g.admin(http.MethodGet, "comm-logs?limit=-3", "").body, "entries.#").Int())
	requireError(t, g.admin(http.MethodGet, "comm-logs?limit=ten", ""), http.StatusBadRequest)
	require.Equal(t, http.StatusOK, g.admin(http.MethodDelete, "comm-logs", "").StatusCode)

	show("gone")
	await.True(t, func() bool {
		a = g.admin(http.MethodDelete, "comm-logs", "")
		return a.StatusCode == http.StatusServiceUnavailable
	})
	require.Equal(t, http.StatusOK, g.admin(http.MethodGet, "comm-logs", "").StatusCode)
}

package sessionwriter

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

// Tables are pruned at the start and then once a day.
func TestPruningRunsDaily(t *testing.T) {
	t.Parallel()
	address := "sqlite:" + filepath.Join(t.TempDir(), "hydrallm.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), address)
		require.NoError(t, err)
		m, err := newMetrics(prometheus.NewRegistry())
		require.NoError(t, err)
		record := func(message string) {
			_, err := db.RecordLogs(t.Context(), []contract.Log{{Level: "INFO", Category: "ROUTING", Message: message, At: time.Now()}})
			require.NoError(t, err)
		}
		left := func() (messages []string) {
			synctest.Wait()
			logs, err := db.Logs(t.Context(), query.Logs{Page: query.Page{Limit: store.MaxLogs}})
			require.NoError(t, err)
			for _, l := range logs {
				messages = append(messages, l.Message)
			}
			return messages
		}

		record("first")
		<-time.After(36 * time.Hour)
		record("second")
		r := store.DefaultRetention
		r.Logs.Age = 24 * time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { keepPruned(ctx, db, func() store.Retention { return r }, slog.New(slog.DiscardHandler), m) })
		require.Equal(t, []string{"second"}, left(), "at the start")

		<-time.After(23 * time.Hour)
		record("third")
		require.Equal(t, []string{"third", "second"}, left())
		<-time.After(time.Hour + time.Minute)
		require.Equal(t, []string{"third", "second"}, left(), "not older than a day when the day was over")
		<-time.After(24 * time.Hour)
		require.Empty(t, left())
		require.InDelta(t, 3, metricValue(t, m.pruned.WithLabelValues("system_logs")), 0)

		cancel()
		wg.Wait()
		require.NoError(t, db.Close())
	})
}

package sessionwriter

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/pgtest"
	"hydrallm/shared/testkit/startstoptest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var _ lifecycle.Service = (*Service)(nil)

// testWait is longer than the time after which the stream delivers a fact again.
const testWait = await.Limit

// bundle is a service on a real bus and a real database.
type bundle struct {
	*Service
	log *strings.Builder // to be read after Stop
}

func sqliteAddress(t *testing.T) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "hydrallm.db")
}

func setup(t *testing.T, database string) *bundle {
	t.Helper()
	log := &strings.Builder{}
	s, err := New(Config{ID: "w1", Database: database}, bustest.Start(t),
		slog.New(slog.NewTextHandler(log, nil)), prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(func() { stop(t, s) })
	return &bundle{Service: s, log: log}
}

func started(t *testing.T, database string) *bundle {
	t.Helper()
	s := setup(t, database)
	require.NoError(t, s.Start(t.Context()))
	return s
}

func stop(t *testing.T, s *Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	require.NoError(t, s.Stop(ctx))
}

func (b *bundle) publish(t *testing.T, subj, data string) {
	t.Helper()
	require.NoError(t, b.bus.PublishFact(t.Context(), subj, "", []byte(data)))
}

// ask queries the service.
func ask[Q, A any](t *testing.T, b *bundle, op query.Op[Q, A], question Q) A {
	t.Helper()
	answer, err := op.Ask(t.Context(), b.bus, question)
	require.NoError(t, err)
	return answer
}

// awaitRequests waits until n requests are counted.
func (b *bundle) awaitRequests(t *testing.T, n int64) (stats query.Stats) {
	t.Helper()
	await.True(t, func() bool {
		stats = ask(t, b, query.GetStats, query.None{})
		return stats.TotalRequests >= n
	})
	require.Equal(t, n, stats.TotalRequests)
	return stats
}

func awaitMetric(t *testing.T, c prometheus.Metric, want float64) {
	t.Helper()
	await.True(t, func() bool { return metricValue(t, c) >= want })
	require.InDelta(t, want, metricValue(t, c), 0)
}

func metricValue(t *testing.T, c prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, c.Write(&m))
	return m.GetCounter().GetValue()
}

func gaugeValue(t *testing.T, g prometheus.Gauge) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, g.Write(&m))
	return m.GetGauge().GetValue()
}

func usageLine(t *testing.T, rid string) string {
	t.Helper()
	data, err := json.Marshal(contract.RequestRecord{
		RequestID: rid, Endpoint: contract.EndpointChat, Model: "fast", Provider: "groq", Status: "success", Prompt: 10, Completion: 3, Total: 13, At: time.Now(),
		Attempts: []contract.Attempt{{Delivery: 1, Ordinal: 1, Provider: "groq", Upstream: "u", Model: "llama", Outcome: contract.CallSuccess, Prompt: 10, Completion: 3, Total: 13}},
	})
	require.NoError(t, err)
	return string(data)
}

func logLine(t *testing.T, message string) string {
	t.Helper()
	data, err := json.Marshal(contract.Log{
		Level: "INFO", Category: "ROUTING", Message: message, RequestID: "r1", Metadata: json.RawMessage(`{"n":1}`), At: time.Now(),
	})
	require.NoError(t, err)
	return string(data)
}

// what the pipeline reports is what the admin routes show, on both databases.
func TestFactsAreStoredAndAnswered(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func(t *testing.T) string{
		"sqlite":   sqliteAddress,
		"postgres": func(t *testing.T) string { t.Helper(); return pgtest.New(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := started(t, address(t))
			s.publish(t, subject.UsageRecorded, usageLine(t, "r1")+"\n"+usageLine(t, "r2")+"\n")
			s.publish(t, subject.Log("ROUTING"), logLine(t, "event 0")+"\n"+logLine(t, "event 1")+"\n")
			s.publish(t, subject.Log("ROUTING"), logLine(t, "event 2"))
			s.publish(t, subject.UsageRecorded, usageLine(t, "r3"))
			require.Equal(t, int64(39), s.awaitRequests(t, 3).TotalTokens)

			var logs []query.LogEntry
			await.True(t, func() bool { // facts of a later batch may come later
				logs = ask(t, s, query.GetLogs, query.Logs{Page: query.Page{Limit: 4}})
				return len(logs) == 3 && logs[0].Message == "event 2" && logs[2].Message == "event 0"
			})
			require.Equal(t, query.Document(`{"n":1}`), logs[0].Metadata)
			raw, err := query.GetLogs.AskRaw(t.Context(), s.bus, query.Logs{Page: query.Page{Limit: 1}})
			require.NoError(t, err)
			require.Regexp(t, `"created_at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`, string(raw))

			require.Equal(t, query.Done{Status: query.Success}, ask(t, s, query.ClearLogs, query.None{}))
			require.Empty(t, ask(t, s, query.GetLogs, query.Logs{}))
		})
	}
}

func TestBadQuestionIsRefused(t *testing.T) {
	t.Parallel()
	s := started(t, sqliteAddress(t))
	_, err := s.bus.Query(t.Context(), query.SessionWriter, query.GetLogs.Name, []byte(`"many"`))
	require.ErrorIs(t, err, fault.New(fault.Invalid, ""))
}

func TestRepeatedFactsCountOnce(t *testing.T) {
	t.Parallel()
	s := started(t, sqliteAddress(t))
	first, event := usageLine(t, "r1"), logLine(t, "event")
	for range 5 {
		s.publish(t, subject.UsageRecorded, first)
		s.publish(t, subject.Log("ROUTING"), event)
	}
	awaitMetric(t, s.metrics.repeated.WithLabelValues(kindUsage), 4)
	awaitMetric(t, s.metrics.repeated.WithLabelValues(kindLog), 4)
	require.Equal(t, int64(13), s.awaitRequests(t, 1).TotalTokens)
}

// A fact that can't be stored goes to the dead letters and holds up nobody; its content does not reach the log.
func TestPoisonousFacts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		subject, data string
		kind          string
	}{
		"no JSON":              {subject.UsageRecorded, "secret-word", kindUsage},
		"wrong type":           {subject.UsageRecorded, `{"request_id":"secret-word","total_tokens":"x"}`, kindUsage},
		"no request id":        {subject.UsageRecorded, `{"status":"secret-word"}`, kindUsage},
		"log without JSON":     {subject.Log("ROUTING"), "secret-word{", kindLog},
		"log of nothing":       {subject.Log("ROUTING"), `{"level":"secret-word"}`, kindLog},
		"log with an array":    {subject.Log("ROUTING"), `["secret-word"]`, kindLog},
		"subject nobody knows": {"hydra.v1.usage.other", `{"secret-word":1}`, kindUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, sqliteAddress(t))
			s.publish(t, subject.UsageRecorded, usageLine(t, "r1"))
			s.publish(t, tc.subject, tc.data)
			s.publish(t, subject.UsageRecorded, usageLine(t, "r2"))
			s.publish(t, subject.Log("ROUTING"), logLine(t, "event"))
			require.NoError(t, s.Start(t.Context())) // the facts wait already, so they come as one batch
			s.awaitRequests(t, 2)
			awaitMetric(t, s.metrics.poisonous.WithLabelValues(tc.kind), 1)
			awaitMetric(t, s.metrics.stored.WithLabelValues(kindLog), 1)
			stop(t, s.Service)
			require.Contains(t, s.log.String(), "can't be stored")
			require.NotContains(t, s.log.String(), "secret-word")
		})
	}
}

// The good lines of a message with a bad one are stored.
func TestPoisonousLine(t *testing.T) {
	t.Parallel()
	s := started(t, sqliteAddress(t))
	s.publish(t, subject.UsageRecorded, strings.Join([]string{usageLine(t, "r1"), "{", "", usageLine(t, ""), usageLine(t, "r2")}, "\n"))
	s.awaitRequests(t, 2)
	awaitMetric(t, s.metrics.poisonous.WithLabelValues(kindUsage), 1)
}

// A database that is in trouble loses nothing: the facts come again until they are stored.
func TestTroubleOfTheDatabasePasses(t *testing.T) {
	t.Parallel()
	address := sqliteAddress(t)
	s := started(t, address)
	db, err := sql.Open("sqlite", strings.TrimPrefix(address, "sqlite:")+"?_busy_timeout=10000")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), `ALTER TABLE daily_usage RENAME TO away`)
	require.NoError(t, err)
	s.publish(t, subject.UsageRecorded, usageLine(t, "r1"))
	s.publish(t, subject.Log("ROUTING"), logLine(t, "event"))
	await.True(t, func() bool { return histogramCount(t, s.metrics.batch) > 1 }, "it came again")
	_, err = db.ExecContext(t.Context(), `ALTER TABLE away RENAME TO daily_usage`)
	require.NoError(t, err)
	s.awaitRequests(t, 1)
	awaitMetric(t, s.metrics.stored.WithLabelValues(kindLog), 1)
	require.Zero(t, metricValue(t, s.metrics.poisonous.WithLabelValues(kindUsage)))
}

func histogramCount(t *testing.T, h prometheus.Histogram) uint64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, h.Write(&m))
	return m.GetHistogram().GetSampleCount()
}

// what is published while the service is down is stored after the next start.
func TestFactsSurviveARestart(t *testing.T) {
	t.Parallel()
	s := started(t, sqliteAddress(t))
	s.publish(t, subject.UsageRecorded, usageLine(t, "r1"))
	s.awaitRequests(t, 1)
	for i := range 3 {
		stop(t, s.Service)
		s.publish(t, subject.UsageRecorded, usageLine(t, fmt.Sprintf("later-%d", i)))
		require.NoError(t, s.Start(t.Context()))
		s.awaitRequests(t, int64(2+i))
	}
}

// Stops in the middle of a stream of facts neither lose nor double one.
func TestStopsAmongFacts(t *testing.T) {
	t.Parallel()
	s := started(t, sqliteAddress(t))
	const n = 400
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			s.publish(t, subject.UsageRecorded, usageLine(t, fmt.Sprintf("r%d", i)))
		}
	})
	for range 5 {
		stop(t, s.Service)
		require.NoError(t, s.Start(t.Context()))
	}
	wg.Wait()
	require.Equal(t, int64(n*13), s.awaitRequests(t, int64(n)).TotalTokens)
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	t.Run("again and again", func(t *testing.T) {
		t.Parallel()
		s := setup(t, sqliteAddress(t))
		n := int64(0)
		startstoptest.Stress(t, s, func() {
			n++
			s.publish(t, subject.UsageRecorded, usageLine(t, fmt.Sprint("r", n)))
			s.awaitRequests(t, n)
		})
	})
	t.Run("database out of reach", func(t *testing.T) {
		t.Parallel()
		s := started(t, "postgres://u:secret-word@127.0.0.1:1/db?sslmode=disable")
		require.NotEmpty(t, s.Degraded())
		stop(t, s.Service)
		require.Contains(t, s.log.String(), "the database can't be had")
		require.NotContains(t, s.log.String(), "secret-word")
	})
	t.Run("database that never will be there", func(t *testing.T) {
		t.Parallel()
		u, err := url.Parse(pgtest.New(t))
		require.NoError(t, err)
		u.User = url.UserPassword(u.User.Username(), "secret-word")
		inUse := sqliteAddress(t)
		started(t, inUse)
		for address, reason := range map[string]string{u.String(): "password authentication failed", inUse: "another session-writer", "sqlite:" + t.TempDir(): ""} {
			s := setup(t, address)
			err := s.Start(t.Context())
			require.ErrorContains(t, err, reason)
			require.NotContains(t, err.Error(), "secret-word")
			stop(t, s.Service)
		}
	})
	t.Run("ends with a context that has ended", func(t *testing.T) {
		t.Parallel()
		s := started(t, sqliteAddress(t))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, s.Stop(ctx))
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := New(Config{MaxBatch: -1, MaxWait: -1}, nil, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.ErrorContains(t, err, "no id")
	require.ErrorContains(t, err, "no database")
	require.ErrorContains(t, err, "batch size")
	require.ErrorContains(t, err, "batch wait")
}

// what has begun is shown as such, and is lost and counted when nobody has told its end in time.
func TestOverdueCalls(t *testing.T) {
	t.Parallel()
	s := started(t, sqliteAddress(t))
	line, err := json.Marshal(contract.RequestRecord{RequestID: "r", Principal: "k:1", Endpoint: contract.EndpointChat, Model: "m", At: time.Now(), Attempts: []contract.Attempt{
		{Delivery: 1, Ordinal: 1, Provider: "p", Upstream: "u", Model: "real", Outcome: contract.CallBegun, At: time.Now(), Until: time.Now().Add(time.Hour)},
	}})
	require.NoError(t, err)
	s.publish(t, subject.UsageRecorded, string(line))
	outcome := func() string {
		calls := ask(t, s, query.GetCalls, query.Calls{})
		if len(calls) == 0 {
			return ""
		}
		return calls[0].Principal + " " + calls[0].Outcome
	}
	await.True(t, func() bool { return outcome() == "k:1 begun" })
	r := s.Running()
	settle(t.Context(), r.store, time.Now(), slog.New(slog.DiscardHandler), s.metrics)
	require.Equal(t, "k:1 begun", outcome())
	settle(t.Context(), r.store, time.Now().Add(2*time.Hour), slog.New(slog.DiscardHandler), s.metrics)
	require.Equal(t, "k:1 lost", outcome())
	require.InDelta(t, 1, metricValue(t, s.metrics.overdue), 0)
}

package sessionwriter

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/session-writer/internal/memory"
)

// Kinds of facts, as the label of the metrics.
const (
	kindUsage    = "usage"
	kindLog      = "log"
	kindTurn     = "turn"
	kindResponse = "response"
	kindWeb      = "web"
	kindUnknown  = "unknown"
)

type metrics struct {
	stored    *prometheus.CounterVec // by kind
	repeated  *prometheus.CounterVec // by kind
	poisonous *prometheus.CounterVec // by kind
	overdue   prometheus.Counter
	batch     prometheus.Histogram
	seconds   *prometheus.HistogramVec // by kind
	pruned    *prometheus.CounterVec   // by table
	requests  *prometheus.CounterVec   // by end
	compacts  *prometheus.CounterVec   // by end
	database  prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help, label string, values ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "hydrallm", Subsystem: "session_writer", Name: name, Help: help}, []string{label})
		for _, v := range values {
			c.WithLabelValues(v) // shown as 0 from the start
		}
		return c
	}
	m := &metrics{
		stored:    counter("facts_stored_total", "Facts that were stored.", "kind", kindUsage, kindLog, kindTurn, kindResponse, kindWeb),
		repeated:  counter("facts_repeated_total", "Facts that were stored already when they came.", "kind", kindUsage, kindLog, kindResponse, kindWeb),
		poisonous: counter("facts_poisonous_total", "Facts that can't be stored and went to the dead letters.", "kind", kindUsage, kindLog, kindTurn, kindResponse, kindWeb, kindUnknown),
		pruned:    counter("rows_pruned_total", "Rows removed because the table is bounded.", "table", "system_logs", "usage_metrics", "attempts", "scraping_metrics", "daily_usage", "sessions", "responses"),
		requests: counter("requests_total", "Requests with a session, by what became of them.", "end",
			endAssembled, endUnstored, endRefused, endRetried, endPoison),
		compacts: counter("compactions_total", "Sessions that were too large, by what became of them.", "end",
			memory.EndSummarised, memory.EndPruned, memory.EndNothing, memory.EndFailed),
		overdue: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "hydrallm", Subsystem: "session_writer", Name: "calls_lost_total", Help: "Upstream calls that began and whose end nobody told in time.",
		}),
		database: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "hydrallm", Subsystem: "session_writer", Name: "database_up", Help: "1 while the database can be had.",
		}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "hydrallm", Subsystem: "session_writer", Name: "batch_facts", Help: "Messages handled together.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 8),
		}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "hydrallm", Subsystem: "session_writer", Name: "write_seconds", Help: "Time to store the facts of one kind of a batch.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"kind"}),
	}
	for _, kind := range []string{kindUsage, kindLog, kindTurn, kindResponse} {
		m.seconds.WithLabelValues(kind) // shown as 0 from the start
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.stored, m.repeated, m.poisonous, m.pruned, m.requests, m.compacts, m.database, m.overdue, m.batch, m.seconds} {
		errs = append(errs, reg.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("registering the metrics of the session-writer: %w", err)
	}
	return m, nil
}

func (m *metrics) compacted(end string) { m.compacts.WithLabelValues(end).Inc() }

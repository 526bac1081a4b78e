package bus

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the figures of the stages that run here. The buses of one process share them.
type metrics struct {
	dead    *prometheus.CounterVec   // dead letters, by stage
	waits   *prometheus.HistogramVec // by stage
	seconds *prometheus.HistogramVec // by stage
	busy    *prometheus.GaugeVec     // by stage
}

// stageMetrics are those of one stage.
type stageMetrics struct {
	waits, seconds prometheus.Observer
	busy           prometheus.Gauge
}

// newMetrics gives the figures in reg, which may be nil.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	by := []string{"stage"}
	m := &metrics{
		dead: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hydrallm_dead_letters_total", Help: "Messages that a stage could not process.",
		}, by),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hydrallm_queue_wait_seconds", Help: "How long a message waited for its stage, from when NATS had it; first deliveries only.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, by),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hydrallm_stage_seconds", Help: "How long a request was in the hands of a stage.",
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}, by),
		busy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hydrallm_stage_in_flight", Help: "Requests that a stage works on.",
		}, by),
	}
	if reg == nil {
		return m, nil
	}
	err := errors.Join(share(reg, &m.dead), share(reg, &m.waits), share(reg, &m.seconds), share(reg, &m.busy))
	if err != nil {
		return nil, fmt.Errorf("registering the metrics of stages: %w", err)
	}
	return m, nil
}

// share registers a collector, or takes the one that another bus of the process has registered.
func share[C prometheus.Collector](reg prometheus.Registerer, collector *C) error {
	err := reg.Register(*collector)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if *collector, ok = known.ExistingCollector.(C); ok {
			return nil
		}
	}
	return err
}

// of gives the figures of a stage, which are there as 0 from then on.
func (m *metrics) of(stage string) stageMetrics {
	m.dead.WithLabelValues(stage)
	return stageMetrics{waits: m.waits.WithLabelValues(stage), seconds: m.seconds.WithLabelValues(stage), busy: m.busy.WithLabelValues(stage)}
}

// waited takes in how long a message has waited that is delivered now; only the first delivery counts.
func waited(waits prometheus.Observer, stored time.Time, deliveries uint64) {
	if deliveries == 1 { // the clocks of this machine and of the server's may differ
		waits.Observe(max(time.Since(stored), 0).Seconds())
	}
}

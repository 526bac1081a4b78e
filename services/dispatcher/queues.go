package dispatcher

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/dispatcher/internal/queue"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
)

// waits is the queues of a dispatcher that runs, in one order with those of the others.
type waits struct {
	set   *queue.Set
	watch *bus.Watch // nil when the dispatcher is alone
}

func (w *waits) begin(ctx context.Context, d *Dispatcher) error {
	cfg := queue.Config{Owner: d.cfg.ID}
	if d.cfg.Alone {
		w.set = queue.New(ctx, nil, cfg, d.log)
		return nil
	}
	bucket, err := d.bus.Bucket(ctx, subject.QueueBucket)
	if err != nil {
		return err
	}
	w.set = queue.New(ctx, entries{bucket}, cfg, d.log)
	w.watch, err = bucket.Watch(ctx, ">", func(e bus.Entry) {
		if e.Deleted {
			e.Value = nil
		}
		w.set.Take(e.Key, e.Value)
	})
	return err
}

// dismiss hands back the requests that wait.
func (w *waits) dismiss() {
	if w.set != nil {
		w.set.Dismiss()
	}
}

// end stops what there is of w. Nobody waits any more by then.
func (w *waits) end(ctx context.Context) error {
	if w.set == nil {
		return nil
	}
	w.watch.Stop()
	ctx, cancel := givingBack(ctx)
	defer cancel()
	return w.set.Close(ctx)
}

// entries is a bucket as queues use it.
type entries struct{ bucket *bus.Bucket }

var _ queue.Store = entries{}

func (e entries) Put(ctx context.Context, key string, value []byte) error {
	_, err := e.bucket.Put(ctx, key, value)
	return err
}

func (e entries) Remove(ctx context.Context, key string) error { return e.bucket.Delete(ctx, key, 0) }

// maxWaiting is how many requests of a queue are shown one by one.
const maxWaiting = 100

// status shows the queues of the models that have one.
func (w *waits) status(cfg *config.Config) []query.Queue {
	all := []query.Queue{}
	for _, l := range w.set.Lines(maxWaiting) {
		m, _ := cfg.Model(l.Model)
		q := query.Queue{Model: l.Model, Waiting: l.Waiting, Length: m.Queue.Length, Requests: []query.Waiting{}}
		for i, r := range l.First {
			q.Requests = append(q.Requests, query.Waiting{RequestID: r.Request, Position: i + 1, Priority: string(r.Priority.Named()), Since: r.Since.UTC().Truncate(time.Millisecond)})
		}
		all = append(all, q)
	}
	for _, m := range cfg.Models {
		if m.Queue.Length > 0 && !slices.ContainsFunc(all, func(q query.Queue) bool { return q.Model == m.Name }) {
			all = append(all, query.Queue{Model: m.Name, Length: m.Queue.Length, Requests: []query.Waiting{}})
		}
	}
	slices.SortFunc(all, func(a, b query.Queue) int { return cmp.Compare(a.Model, b.Model) })
	return all
}

// queueMetrics reads the queues when metrics are collected.
type queueMetrics struct {
	length *prometheus.Desc
	cfg    func() *config.Config
	queues func() *queue.Set // nil while the dispatcher does not run
}

func newQueueMetrics(cfg func() *config.Config, queues func() *queue.Set) *queueMetrics {
	return &queueMetrics{
		length: prometheus.NewDesc("hydrallm_slot_waiting", "Requests in this process that wait for a slot of a model with a queue.", []string{"model"}, nil),
		cfg:    cfg, queues: queues,
	}
}

// Describe is for the registry.
func (m *queueMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.length }

// Collect is for the registry.
func (m *queueMetrics) Collect(ch chan<- prometheus.Metric) {
	set := m.queues()
	if set == nil {
		return
	}
	for _, model := range m.cfg().Models {
		if model.Queue.Length > 0 {
			ch <- prometheus.MustNewConstMetric(m.length, prometheus.GaugeValue, float64(set.Own(model.Name)), model.Name)
		}
	}
}

package httpapi

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/telemetry"
)

// route is a label value of the metrics: one of these, or that of an operation.
type route string

const (
	routeOther   route = "other"
	routeAdmin   route = "admin"
	routeHealth  route = "health"
	routeMetrics route = "metrics"
	routeRoot    route = "root"
	routeUI      route = "ui"
	routeDocs    route = "docs"
)

// allRoutes is the closed set.
func allRoutes() []route {
	list := []route{routeOther, routeAdmin, routeHealth, routeMetrics, routeRoot, routeUI, routeDocs}
	for i := range operations {
		if !slices.Contains(list, operations[i].route) {
			list = append(list, operations[i].route)
		}
	}
	return list
}

const classCount = 5 // 1xx to 5xx

// Metrics are the figures of the ingress. All label sets are closed.
type Metrics struct {
	requests  map[route]*[classCount]prometheus.Counter
	firstByte prometheus.Histogram
	received  prometheus.Counter
	sent      prometheus.Counter
	failures  map[string]prometheus.Counter

	served     *telemetry.Observers[servedKey]
	firstToken *telemetry.Observers[servedKey]

	unrecorded prometheus.Counter
	clients    *clientMetrics
}

// servedLabels are those of servedKey, but for the failure.
var servedLabels = []string{telemetry.LabelOperation, telemetry.LabelRequestModel, telemetry.LabelProvider, telemetry.LabelResponseModel}

// NewMetrics registers the figures. inFlight gives the number of requests that await their answers.
func NewMetrics(reg prometheus.Registerer, inFlight func() int) (*Metrics, error) {
	m := &Metrics{
		firstByte: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hydrallm_ingress_first_byte_seconds", Help: "Time from a request for the pipeline to the status line of its answer.",
			Buckets: []float64{.002, .005, .01, .02, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}),
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hydrallm_ingress_request_body_bytes_total", Help: "Bytes of requests for the pipeline, decompressed.",
		}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hydrallm_ingress_response_body_bytes_total", Help: "Bytes of answers of the pipeline.",
		}),
		requests: map[route]*[classCount]prometheus.Counter{},
		clients:  newClientMetrics(),
		failures: map[string]prometheus.Counter{},
		unrecorded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hydrallm_ingress_unrecorded_decisions_total", Help: "Decisions about configured models whose log fact was not stored.",
		}),
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hydrallm_ingress_requests_total", Help: "Requests by route and class of the status.",
	}, []string{"route", "class"})
	for _, r := range allRoutes() {
		m.requests[r] = &[classCount]prometheus.Counter{}
		for class := range classCount {
			m.requests[r][class] = requests.WithLabelValues(string(r), fmt.Sprintf("%dxx", class+1))
		}
	}
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hydrallm_ingress_unfinished_total", Help: "Requests whose answer did not come to its end; gone: the client left.",
	}, []string{"reason"})
	for _, reason := range pending.Reasons() {
		m.failures[reason] = failures.WithLabelValues(reason)
	}
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hydrallm_ingress_in_flight", Help: "Requests that await their answer or its end.",
	}, func() float64 { return float64(inFlight()) })
	served := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gen_ai_server_request_duration_seconds", Help: "Duration of requests for the pipeline, to the last byte of the answer.",
		Buckets: telemetry.GenAISeconds,
	}, append(servedLabels, telemetry.LabelErrorType))
	m.served = telemetry.NewObservers(served, func(k servedKey) []string {
		return []string{k.operation, k.model, k.provider, k.answered, k.failure}
	})
	firstToken := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gen_ai_server_time_to_first_token_seconds", Help: "Time from a request to the first content of its stream.",
		Buckets: telemetry.GenAIFirstToken,
	}, servedLabels)
	m.firstToken = telemetry.NewObservers(firstToken, func(k servedKey) []string {
		return []string{k.operation, k.model, k.provider, k.answered}
	})
	for _, c := range []prometheus.Collector{m.firstByte, m.received, m.sent, m.unrecorded, requests, failures, gauge, m.clients.requests, m.clients.tokens, served, firstToken} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of the ingress: %w", err)
		}
	}
	return m, nil
}

// Failed counts a request whose answer did not come to its end.
func (m *Metrics) Failed(err error) { m.failures[pending.Reason(err)].Inc() }

// Unrecorded counts a decision that is not in the decision log.
func (m *Metrics) Unrecorded() { m.unrecorded.Inc() }

func (m *Metrics) answered(r route, status int) {
	m.requests[r][min(max(status/100-1, 0), classCount-1)].Inc()
}

func (m *Metrics) committed(since time.Duration) { m.firstByte.Observe(since.Seconds()) }

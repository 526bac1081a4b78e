package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// TraceConfig says where traces go.
type TraceConfig struct {
	Endpoint string // base URL of an OTLP/HTTP collector, as OTEL_EXPORTER_OTLP_ENDPOINT has it; "" = no spans are made, those of clients still travel
	Service  string // service.name
	Instance string // component inside the service: ingress, dispatcher, ...
	Version  string
	Logger   *slog.Logger // gets what goes wrong with sending; required
}

// ErrBadEndpoint says that the address of the trace collector is no http(s) URL.
var ErrBadEndpoint = errors.New("trace collector address must be an http or https URL")

// StartTracing installs the process-wide tracer provider and propagator. stop sends what is buffered.
func StartTracing(ctx context.Context, cfg TraceConfig) (stop func(context.Context) error, err error) {
	otel.SetTextMapPropagator(propagation.TraceContext{})
	if cfg.Endpoint == "" {
		otel.SetTracerProvider(noop.NewTracerProvider())
		return func(context.Context) error { return nil }, nil
	}
	address, err := tracesURL(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(address))
	if err != nil {
		return nil, fmt.Errorf("creating the trace exporter: %w", err)
	}
	otel.SetErrorHandler(&complaints{log: cfg.Logger})
	otel.SetLogger(logr.FromSlogHandler(cfg.Logger.Handler()))
	provider := trace.NewTracerProvider(
		trace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", cfg.Service), attribute.String("service.version", cfg.Version),
			attribute.String("service.instance.id", cfg.Instance))),
		trace.WithBatcher(exporter), trace.WithSampler(trace.ParentBased(trace.AlwaysSample())))
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}

// TraceID gives the id of the trace that ctx is part of, in hexadecimal digits, or "". A trace is what the client has begun, or what is sent to a
// collector.
func TraceID(ctx context.Context) string {
	if span := api.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return ""
}

// tracesPath is where a collector takes traces, below its base URL (OTLP specification, "OTLP/HTTP Request").
const tracesPath = "/v1/traces"

// tracesURL adds the path for traces to the address of a collector, unless it is there.
func tracesURL(endpoint string) (string, error) {
	// The exporter would only log an address that it can't read, and then call a default one.
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%w: %q", ErrBadEndpoint, endpoint)
	}
	if !strings.HasSuffix(u.Path, tracesPath) {
		u = u.JoinPath(tracesPath)
	}
	return u.String(), nil
}

// complaintEvery is how often failures of sending traces are logged, at most: a collector that is away fails every few seconds.
const complaintEvery = time.Minute

// complaints logs what the tracer complains of.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	last time.Time
	held int // since then
}

// Handle logs err, or counts it.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last) < complaintEvery {
		c.held++
		return
	}
	c.log.Warn("sending traces", slog.Any("error", err), slog.Int("more", c.held))
	c.last, c.held = time.Now(), 0
}

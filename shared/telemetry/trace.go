package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// TraceConfig says where traces go.
type TraceConfig struct {
	Endpoint string // URL of an OTLP/HTTP collector; "" = spans are not recorded, ids still travel
	Service  string // service.name
	Instance string // component inside the service: ingress, dispatcher, ...
	Version  string
}

// ErrBadEndpoint says that the address of the trace collector is no http(s) URL.
var ErrBadEndpoint = errors.New("trace collector address must be an http or https URL")

// StartTracing installs the process-wide tracer provider and propagator. stop sends what is buffered.
func StartTracing(ctx context.Context, cfg TraceConfig) (stop func(context.Context) error, err error) {
	otel.SetTextMapPropagator(propagation.TraceContext{})
	opts := []trace.TracerProviderOption{
		trace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", cfg.Service), attribute.String("service.version", cfg.Version),
			attribute.String("service.instance.id", cfg.Instance))),
	}
	if cfg.Endpoint == "" {
		opts = append(opts, trace.WithSampler(trace.NeverSample()))
	} else {
		// The exporter only logs an address that it can't read, and then calls a default one.
		if u, err := url.Parse(cfg.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("%w: %q", ErrBadEndpoint, cfg.Endpoint)
		}
		exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(cfg.Endpoint))
		if err != nil {
			return nil, fmt.Errorf("creating the trace exporter: %w", err)
		}
		opts = append(opts, trace.WithBatcher(exporter), trace.WithSampler(trace.ParentBased(trace.AlwaysSample())))
	}
	provider := trace.NewTracerProvider(opts...)
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}

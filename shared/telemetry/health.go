package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewRegistry gives a metrics registry with the figures of the Go runtime and the process, and which release this is.
func NewRegistry(version string) *prometheus.Registry {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hydrallm_build_info", Help: "Always 1; the labels say which release runs.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	r := prometheus.NewRegistry()
	r.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// HealthServer answers /healthz, /readyz and /metrics of a service that has no other HTTP.
type HealthServer struct {
	addr    string
	handler http.Handler
	log     *slog.Logger

	server *http.Server
	bound  net.Addr
	wg     sync.WaitGroup
}

// State is what a health server tells of a service.
type State interface {
	Ready() bool      // it can work now
	Degraded() string // what it works without, for people; "" = nothing
}

// NewHealthServer will listen on addr (host:port).
func NewHealthServer(addr string, metrics prometheus.Gatherer, state State, log *slog.Logger) *HealthServer {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok", "") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		reason := state.Degraded()
		switch {
		case !state.Ready():
			answer(w, http.StatusServiceUnavailable, "not ready", reason)
		case reason != "":
			answer(w, http.StatusOK, "degraded", reason)
		default:
			answer(w, http.StatusOK, "ready", "")
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return &HealthServer{addr: addr, handler: mux, log: log}
}

func answer(w http.ResponseWriter, status int, text, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if reason != "" {
		fmt.Fprintf(w, `{"status":%q,"reason":%q}`+"\n", text, reason)
		return
	}
	fmt.Fprintf(w, `{"status":%q}`+"\n", text)
}

// Start listens and serves.
func (h *HealthServer) Start(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", h.addr)
	if err != nil {
		return fmt.Errorf("listening for health checks: %w", err)
	}
	h.bound = ln.Addr()
	h.server = &http.Server{Handler: h.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	h.wg.Go(func() {
		if err := h.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			h.log.Error("serving health checks", slog.Any("error", err))
		}
	})
	return nil
}

// Addr is the address on which the server listens, or nil when it was never started.
func (h *HealthServer) Addr() net.Addr { return h.bound }

// Stop ends the server.
func (h *HealthServer) Stop(ctx context.Context) error {
	if h.server == nil {
		return nil
	}
	err := h.server.Shutdown(ctx)
	h.wg.Wait()
	if err != nil {
		return fmt.Errorf("stopping the health server: %w", err)
	}
	return nil
}

package dispatcher

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/surface/chat"
	"hydrallm/services/dispatcher/internal/surface/completions"
	"hydrallm/services/dispatcher/internal/surface/messages"
	"hydrallm/services/dispatcher/internal/surface/responses"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/telemetry"
)

// newExecutor assembles what runs requests.
func newExecutor(cfg Config, planner execute.Planner, breakers *breaker.Set, known *secrets, log *slog.Logger, metrics *execute.Metrics) *execute.Executor {
	r := cfg.Gateway.Resilience
	expect(metrics, cfg.Gateway)
	return &execute.Executor{
		Surfaces: map[contract.Surface]surface.Surface{
			contract.SurfaceChat: chat.Surface{}, contract.SurfaceMessages: messages.Surface{}, contract.SurfaceResponses: responses.Surface{},
			contract.SurfaceCompletions: completions.Surface{},
		},
		Planner: planner, Breakers: permits{breakers}, Secrets: known, Log: log,
		Metrics: metrics, Health: &execute.Health{},
		Limits: execute.Limits{
			MaxHops: r.MaxHops, MaxRetries: r.MaxRetries, GateTimeout: r.GateTimeout, RoutedHeaders: r.RoutedTimeout, IdleTimeout: r.IdleTimeout, RequestDeadline: r.RequestDeadline,
		},
	}
}

// expect shows the figures of what is configured as 0.
func expect(metrics *execute.Metrics, cfg *config.Config) {
	metrics.Expect(channels(cfg))
	for _, u := range cfg.Upstreams {
		metrics.ExpectModel(u.Provider, u.Model)
	}
	for _, m := range cfg.Models {
		if m.Queue.Length > 0 {
			metrics.ExpectQueue(m.Name)
		}
	}
}

// channels are the ids under which calls are counted: those of the upstreams, and those of providers for requests that are routed.
func channels(cfg *config.Config) []string {
	var ids []string
	for _, u := range cfg.Upstreams {
		ids = append(ids, u.ID)
	}
	for _, p := range cfg.Providers {
		ids = append(ids, p.ID)
	}
	return ids
}

// newBreakers gives each upstream a breaker with the channel preset and each provider one with its own (C-08).
func newBreakers(cfg *config.Config, log *slog.Logger, reg prometheus.Registerer, changed func(channel string)) (*breaker.Set, error) {
	transitions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hydrallm_breaker_transitions_total", Help: "Changes of state of circuit breakers.",
	}, []string{"upstream", "to"})
	reg.MustRegister(transitions)
	channels := circuits(cfg)
	for id := range channels {
		for _, to := range []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen} {
			transitions.WithLabelValues(id, to.String()) // shown as 0 from the start
		}
	}
	return breaker.NewSet(channels, func(channel string, t breaker.Transition) {
		transitions.WithLabelValues(channel, t.To.String()).Inc()
		level := slog.LevelInfo
		if t.To == breaker.Open {
			level = slog.LevelWarn
		}
		telemetry.Event(context.Background(), log, level, "breaker", "upstream", channel, "from", t.From, "to", t.To, "failures", t.Failures,
			"open_for", t.OpenFor, "remote", t.Remote)
		if t.To == breaker.Open && !t.Remote || t.To == breaker.Closed {
			changed(channel)
		}
	})
}

// circuits gives what is guarded by a breaker, with its settings.
func circuits(cfg *config.Config) map[string]breaker.Config {
	all := map[string]breaker.Config{}
	for _, u := range cfg.Upstreams {
		all[u.ID] = preset(cfg.Resilience.ChannelBreaker)
	}
	for _, p := range cfg.Providers {
		all[plan.ProviderCircuit(p.ID)] = preset(cfg.Resilience.ProviderBreaker)
	}
	return all
}

func preset(b config.Breaker) breaker.Config {
	return breaker.Config{Consecutive: b.Consecutive, Failures: b.Failures, Window: b.Window, OpenFor: b.OpenFor, HalfOpen: b.HalfOpen}
}

// permits is the breakers as the executor sees them.
type permits struct{ set *breaker.Set }

var _ execute.Breakers = permits{}

func (p permits) Ready(channel string) bool { return p.set.Get(channel).Ready() }

func (p permits) Acquire(channel string) (execute.Permit, bool) {
	permit, ok := p.set.Get(channel).Acquire()
	if !ok {
		return nil, false
	}
	return &permit, true
}

func (p permits) OpenFor(channel string) time.Duration {
	return p.set.Get(channel).Snapshot().Remaining
}

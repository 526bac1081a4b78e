package config

import (
	"math"
	"time"
)

// Resilience holds the limits of retries, time and failures.
type Resilience struct {
	MaxHops         int // upstream calls of a request across channels
	MaxRetries      int // attempts within one key pool
	GateTimeout     time.Duration
	HeadersTimeout  time.Duration
	RequestTimeout  time.Duration // one upstream call with its stream
	IdleTimeout     time.Duration // between two upstream bytes after commit; 0 = none
	RequestDeadline time.Duration // the whole client request; 0 = none
	ProviderBreaker Breaker       // of a provider pool
	ChannelBreaker  Breaker       // of an upstream
	Cooldowns       Cooldowns
	ProbeInterval   time.Duration
}

// Breaker holds the settings of a circuit breaker, which opens after Consecutive failures in a row, or else after Failures within Window
// . The other number is 0.
type Breaker struct {
	Consecutive int
	Failures    int
	Window      time.Duration
	OpenFor     time.Duration
	HalfOpen    bool // a single probe goes first
}

// Cooldowns are how long a key rests, by the reason. Max caps what providers ask for.
type Cooldowns struct{ Forbidden, Quota, Other, Max time.Duration }

func defaultResilience() Resilience {
	return Resilience{
		MaxHops: 3, MaxRetries: 3,
		GateTimeout: 30 * time.Second, HeadersTimeout: 240 * time.Second, RequestTimeout: 300 * time.Second,
		ProviderBreaker: Breaker{Consecutive: 5, OpenFor: time.Minute, HalfOpen: true},
		ChannelBreaker:  Breaker{Failures: 3, Window: 5 * time.Minute, OpenFor: time.Minute},
		Cooldowns:       Cooldowns{Forbidden: 24 * time.Hour, Quota: time.Hour, Other: 5 * time.Minute, Max: 24 * time.Hour},
		ProbeInterval:   time.Minute,
	}
}

func (doc *document) resilience(n node) {
	r := &doc.Resilience
	n.fields(map[string]func(node){
		"max_hops": integer(&r.MaxHops, 1, math.MaxInt16), "max_retries": integer(&r.MaxRetries, 1, math.MaxInt16),
		"stream_gate_timeout": duration(&r.GateTimeout), "headers_timeout": positive(&r.HeadersTimeout),
		"request_timeout": positive(&r.RequestTimeout), "idle_timeout": duration(&r.IdleTimeout), "request_deadline": duration(&r.RequestDeadline),
		"breaker": func(n node) {
			n.fields(map[string]func(node){"provider": breaker(&r.ProviderBreaker), "channel": breaker(&r.ChannelBreaker)})
		},
		"cooldowns": func(n node) {
			c := &r.Cooldowns
			n.fields(map[string]func(node){
				"forbidden": duration(&c.Forbidden), "quota": duration(&c.Quota), "other": duration(&c.Other), "max": positive(&c.Max),
			})
		},
		"probe_interval": positive(&r.ProbeInterval),
	})
}

// breaker reads a breaker of either kind. A key of one kind takes the place of the other kind's default.
func breaker(b *Breaker) func(node) {
	return func(n node) {
		n.fields(map[string]func(node){
			"consecutive": integer(&b.Consecutive, 1, math.MaxInt32), "failures": integer(&b.Failures, 1, math.MaxInt32),
			"window": positive(&b.Window), "open_for": positive(&b.OpenFor), "half_open": boolean(&b.HalfOpen),
		})
		consecutive := n.r.given(join(n.path, "consecutive"))
		windowed := n.r.given(join(n.path, "failures")) || n.r.given(join(n.path, "window"))
		switch {
		case consecutive && windowed:
			n.fail("takes either consecutive, or failures within a window")
		case consecutive:
			b.Failures, b.Window = 0, 0
		case windowed:
			b.Consecutive = 0
			if b.Failures == 0 || b.Window == 0 {
				n.fail("needs both failures and window")
			}
		}
	}
}

// checkTimeouts warns of limits that the total takes the place of.
func (doc *document) checkTimeouts(path string, headers, total time.Duration) {
	if gate := doc.Resilience.GateTimeout; total <= headers+gate {
		doc.warn(path, "request_timeout %s is not more than headers_timeout %s and stream_gate_timeout %s together, so that it may end a call first",
			total, headers, gate)
	}
}

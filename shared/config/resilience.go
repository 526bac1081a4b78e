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
	RoutedTimeout   time.Duration // the same for a routed stream while another provider could answer
	RequestTimeout  time.Duration // one upstream call with its stream
	IdleTimeout     time.Duration // longest silence after the first content of a stream; 0 = none
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

func (r *Resilience) settings() []setting {
	c := &r.Cooldowns
	return []setting{
		key("max_hops", integer(&r.MaxHops, 1, math.MaxInt16), "3", "upstream calls that one request may make across channels"),
		key("max_retries", integer(&r.MaxRetries, 1, math.MaxInt16), "3", "attempts within one pool of keys").env("MAX_RETRIES"),
		key("stream_gate_timeout", duration(&r.GateTimeout), "30s", "how long an answer is held back, from its headers on, to see whether it begins "+
			"with content or with an error. After that it is passed on"),
		key("headers_timeout", positive(&r.HeadersTimeout), "240s", "an upstream that sends no response headers within this time has failed"),
		key("routed_headers_timeout", positive(&r.RoutedTimeout), "60s", "the same for a stream of automatic routing as long as another provider could "+
			"answer it, unless `headers_timeout` is shorter. Local agents, which may have to load a model, have the long one"),
		key("request_timeout", positive(&r.RequestTimeout), "300s", "one upstream call from the first byte sent to the last one received"),
		key("idle_timeout", duration(&r.IdleTimeout), "0s", "longest silence of an upstream after the first content of a stream; 0 for none"),
		key("request_deadline", duration(&r.RequestDeadline), "0s", "all calls of one client request together; 0 for none. Responses in the background and requests with an `Idempotency-Key` have `server.background_lifetime` instead"),
		key("breaker", mapping(
			key("provider", breaker(&r.ProviderBreaker), "{consecutive: 5, open_for: 60s, half_open: true}", "for the pools of automatic routing"),
			key("channel", breaker(&r.ChannelBreaker), "{failures: 3, window: 5m, open_for: 60s, half_open: false}", "for each entry of `upstreams`"),
		), "", "circuit breakers"),
		key("cooldowns", mapping(
			key("forbidden", duration(&c.Forbidden), "24h", "after 401 and 403"),
			key("quota", duration(&c.Quota), "1h", "after 429"),
			key("other", duration(&c.Other), "5m", "after other failures"),
			key("max", positive(&c.Max), "24h", "the longest rest, whatever a provider states"),
		), "", "how long a key of a pool rests. What a provider states itself comes first"),
		key("probe_interval", positive(&r.ProbeInterval), "60s", "how often keys whose rest is over are tried"),
	}
}

// breaker is a breaker of either kind. A key of one kind takes the place of the other kind's default.
func breaker(b *Breaker) kind {
	k := mapping(
		key("consecutive", integer(&b.Consecutive, 1, math.MaxInt32), "", "opens after this many failures in a row"),
		key("failures", integer(&b.Failures, 1, math.MaxInt32), "", "opens after this many failures within `window`"),
		key("window", positive(&b.Window), "", "the time in which `failures` are counted"),
		key("open_for", positive(&b.OpenFor), "", "how long an open breaker lets nothing through"),
		key("half_open", boolean(&b.HalfOpen), "", "afterwards: one call goes first and decides, or all go at once"),
	)
	fields := k.read
	k.read = func(n node) {
		fields(n)
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
	return k
}

// checkCooldowns warns of rests that are cut short.
func (doc *document) checkCooldowns() {
	c := doc.Resilience.Cooldowns
	for i, rest := range []time.Duration{c.Forbidden, c.Quota, c.Other} {
		if path := "resilience.cooldowns." + []string{"forbidden", "quota", "other"}[i]; rest > c.Max && doc.given(path) {
			doc.warn(path, "%s is more than cooldowns.max, so that a key rests for %s", rest, c.Max)
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

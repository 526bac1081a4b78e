package dispatcher_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/contract"
	"hydrallm/shared/dispatcherhealth"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/startstoptest"
)

// every setting has an effect. These are the ones of the dispatcher, from the text of the configuration to what upstream and client see.

// run starts a dispatcher with a configuration as it is, but without what works on its own: URL stands for the address of the upstream.
func (p *pipeline) run(text string) {
	p.t.Helper()
	cfg := configtest.Parse(p.t, strings.ReplaceAll(text, "URL", p.upstream.URL()+"/v1"))
	p.runConfig(cfg)
}

func (p *pipeline) runConfig(cfg *config.Config) {
	p.t.Helper()
	d, err := dispatcher.New(dispatcher.Config{ID: "d", Gateway: cfg, Version: "1.2.3"}, p.connect(), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(p.t, err)
	require.NoError(p.t, d.Start(p.t.Context()))
	p.t.Cleanup(func() { startstoptest.Stop(p.t, d) })
}

// to makes a request one that is routed to a provider, with the model that this finds for itself.
func to(provider string, change ...func(*contract.Decision)) func(*contract.Request) {
	return func(r *contract.Request) {
		r.Model, r.Decision = "auto", &contract.Decision{Provider: provider, Reason: contract.ReasonTokenCount}
		for _, fn := range change {
			fn(r.Decision)
		}
	}
}

// get asks and gives the whole answer.
func (p *pipeline) get(rid, body string, change ...func(*contract.Request)) received {
	p.t.Helper()
	p.ask(rid, body, change...)
	return p.await(rid)
}

// called lists the models that the upstream was asked for, in order.
func (p *pipeline) called() (models []string) {
	for _, r := range p.upstream.Requests() {
		models = append(models, r.Model())
	}
	return models
}

// fails lets the upstream fail for some models.
func fails(models ...string) func(fakellm.Request) fakellm.Answer {
	return func(r fakellm.Request) fakellm.Answer {
		for _, m := range models {
			if r.Model() == m {
				return fakellm.Error(500, "no")
			}
		}
		return fakellm.Chat("from " + r.Model())
	}
}

const (
	twoUpstreams = `
providers: [{id: p, url: "URL", key: k}]
upstreams: [{id: u, provider: p, model: first}, {id: v, provider: p, model: second}]
models: [{name: m, upstreams: [u, v]}]
`
	threeProviders = `
providers:
  - {id: a, url: "URL", key: ka, default_models: {free: of-a}}
  - {id: b, url: "URL", key: kb, default_models: {free: of-b}}
  - {id: c, url: "URL", key: kc, default_models: {free: of-c}}
`
	manyKeys = `
providers: [{id: p, url: "URL", keys: [key-1, key-2, key-3, key-4, key-5]}]
upstreams: [{id: u, provider: p, model: first}]
models: [{name: m, upstreams: [u]}]
`
)

func TestSettingsOfAttempts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text, settings string
		want           []string
	}{
		"max_hops":                {twoUpstreams, `max_hops: 1`, []string{"first"}},
		"max_hops by default":     {twoUpstreams, ``, []string{"first", "second"}},
		"max_retries":             {manyKeys, `max_retries: 2`, []string{"first", "first"}},
		"max_retries by default":  {manyKeys, ``, []string{"first", "first", "first"}},
		"more than keys":          {manyKeys, `max_retries: 9, breaker: {channel: {failures: 9, window: 1m}}`, []string{"first", "first", "first", "first", "first"}},
		"retries are one channel": {manyKeys, `max_retries: 2, max_hops: 1`, []string{"first", "first"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			p.upstream.Handle(fails("first", "second"))
			p.run(tc.text + "resilience: {" + tc.settings + "}\n")
			require.Equal(t, 503, p.get("r", plainBody).status)
			require.Equal(t, tc.want, p.called())
		})
	}
}

// The limits of time: each row has one that is short, and an upstream that runs into it.
func TestSettingsOfTime(t *testing.T) {
	t.Parallel()
	silent := fakellm.Stream("x").First(1, fakellm.Hang) // nothing decisive
	begun := fakellm.Stream("x", "y").First(2, fakellm.Hang)
	for name, tc := range map[string]struct {
		settings string // of resilience
		provider string // more of it
		answer   fakellm.Answer
		second   bool // another upstream answers
	}{
		"headers_timeout":                 {"headers_timeout: 2s", "", fakellm.NoAnswer(), true},
		"headers_timeout of the provider": {"", "headers_timeout: 2s", fakellm.NoAnswer(), true},
		"request_timeout":                 {"request_timeout: 2s", "", silent, true},
		"request_timeout of the provider": {"", "request_timeout: 2s", silent, true},
		"request_timeout, committed":      {"request_timeout: 2s", "", begun, false},
		"idle_timeout":                    {"idle_timeout: 2s", "", begun, false},
		"stream_gate_timeout":             {"stream_gate_timeout: 2s, request_timeout: 4s", "", silent, false},
		"request_deadline":                {"request_deadline: 2s", "", fakellm.NoAnswer(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			p.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
				if r.Model() == "first" {
					return tc.answer
				}
				return fakellm.Stream("second")
			})
			p.run(strings.Replace(twoUpstreams, "key: k", "key: k, "+tc.provider, 1) + "resilience: {" + tc.settings + "}\n")
			start := time.Now()
			got := p.get("r", streamBody)
			require.Less(t, time.Since(start), 30*time.Second, "the usual limits are longer")
			require.Equal(t, tc.second, got.outcome == contract.OutcomeSuccess, got.body)
			if tc.second {
				require.Contains(t, got.body, "second")
			} else {
				require.Equal(t, []string{"first"}, p.called())
			}
			if name == "stream_gate_timeout" {
				require.Equal(t, 200, got.status, "slow is not broken")
			}
		})
	}
}

// the limit for the headers of a routed stream, as long as another provider could answer.
func TestSettingOfRoutedHeaders(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		if r.Model() == "of-a" {
			return fakellm.NoAnswer()
		}
		return fakellm.Stream("second")
	})
	p.run(threeProviders + "routing: {priority: [a, b]}\nresilience: {routed_headers_timeout: 100ms}\n")
	got := p.get("r", streamBody, to("a"))
	require.Equal(t, contract.OutcomeSuccess, got.outcome, got.body)
	require.Equal(t, []string{"of-a", "of-b"}, p.called())
}

// the breaker of an upstream and that of a provider have settings of their own.
func TestSettingsOfBreakers(t *testing.T) {
	t.Parallel()
	t.Run("channel", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		p.upstream.Handle(fails("first"))
		p.run(twoUpstreams + "resilience: {breaker: {channel: {failures: 2, window: 1m, open_for: 1h, half_open: true}}}\n")
		for i := range 4 {
			require.Equal(t, 200, p.get(fmt.Sprint("r", i), plainBody).status)
		}
		require.Equal(t, []string{"first", "second", "first", "second", "second", "second"}, p.called())
		require.Equal(t, "open", p.status().Circuits["u"].State)
	})
	t.Run("provider", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		p.upstream.Handle(fails("of-a"))
		p.run(threeProviders + "routing: {priority: [a, b]}\nresilience: {breaker: {provider: {consecutive: 1, open_for: 1h}, channel: {failures: 9, window: 1m}}}\n")
		for i := range 3 {
			require.Equal(t, 200, p.get(fmt.Sprint("r", i), plainBody, to("a")).status)
		}
		require.Equal(t, []string{"of-a", "of-b", "of-b", "of-b"}, p.called())
	})
	for _, halfOpen := range []bool{false, true} {
		t.Run(fmt.Sprint("open_for, half_open ", halfOpen), func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			p.upstream.Handle(fails("first"))
			p.run(twoUpstreams + fmt.Sprintf("resilience: {breaker: {channel: {failures: 1, window: 1m, open_for: 300ms, half_open: %t}}}\n", halfOpen))
			p.get("r", plainBody)
			want := "closed"
			if halfOpen {
				want = "half-open"
			}
			p.eventually(func() bool { return p.status().Circuits["u"].State == want })
			p.get("r2", plainBody)
			require.Equal(t, []string{"first", "second", "first", "second"}, p.called())
		})
	}
}

// how long a key rests, by the reason.
func TestSettingsOfCooldowns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer fakellm.Answer
		want   int64 // seconds
	}{
		"forbidden": {fakellm.Error(401, "bad key"), 1000},
		"quota":     {fakellm.Error(429, "slow down"), 2000},
		"max":       {fakellm.Answer{Status: 429, Header: map[string]string{"Retry-After": "90000"}}, 4000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			p.upstream.Queue(tc.answer)
			p.run(strings.Replace(manyKeys, ", key-2, key-3, key-4, key-5", "", 1) +
				"resilience: {cooldowns: {forbidden: 1000s, quota: 2000s, other: 3000s, max: 4000s}}\n")
			require.GreaterOrEqual(t, p.get("r", plainBody).status, 424)
			require.InDelta(t, tc.want, gjson.Get(p.rawStatus(), "key_statistics.p.keys.0.cooldown_remaining").Int(), 60)
		})
	}
	t.Run("other", func(t *testing.T) { // it rests for the model that failed
		t.Parallel()
		p := setup(t)
		p.upstream.Queue(fakellm.Error(500, "no"))
		p.run(strings.Replace(manyKeys, ", key-2, key-3, key-4, key-5", "", 1) + "resilience: {cooldowns: {other: 200ms}}\n")
		require.Equal(t, 503, p.get("r", plainBody).status)
		n := 0
		p.eventually(func() bool {
			n++
			return p.get(fmt.Sprint("r", n), plainBody).status == 200
		})
		require.Len(t, p.upstream.Requests(), 2)
	})
}

// keys whose rest is over are probed without a call.
func TestSettingOfProbes(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Queue(fakellm.Error(401, "bad key"))
	p.run(strings.Replace(manyKeys, ", key-2, key-3, key-4, key-5", "", 1) + "resilience: {cooldowns: {forbidden: 200ms}, probe_interval: 100ms}\n")
	require.Equal(t, 503, p.get("r", plainBody).status)
	p.eventually(func() bool {
		key := gjson.Get(p.rawStatus(), "key_statistics.p.keys.0")
		return key.Get("status").Str == "active" && key.Get("last_probed").Exists()
	})
	require.Len(t, p.upstream.Requests(), 1)
}

// What a provider is given shows in the calls to it, whether a configured model or routing leads there.
func TestSettingsOfProviders(t *testing.T) {
	t.Parallel()
	const text = `
providers:
  - {id: p, url: "URL", key: the-key, headers: {X-Own: own}, patch: {temperature: 0.5}, think_tags: split, max_concurrency: 1, session_header: X-Dialogue,
     default_models: {free: of-p}, defaults: {frequency_penalty: 0.75, temperature: 0.1}}
upstreams: [{id: u, provider: p, model: first, patch: {top_p: 0.25}, defaults: {frequency_penalty: 0.5}}, {id: v, provider: p, model: plain, think_tags: "off", max_concurrency: 0}]
models: [{name: m, upstreams: [u], patch: {seed: 7}, defaults: {presence_penalty: 0.25}}, {name: n, upstreams: [v]}]
`
	routed := map[string]func(*contract.Request){"configured": func(*contract.Request) {}, "routed": to("p")}
	for name, how := range routed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			p.upstream.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.Chat("<think>a</think>b") })
			p.run(text)
			got := p.get("r", plainBody, how)
			require.Equal(t, "b", gjson.Get(got.body, "choices.0.message.content").Str)
			require.Equal(t, "a", gjson.Get(got.body, "choices.0.message.reasoning_content").Str)
			r := p.upstream.Requests()[0]
			require.Equal(t, "the-key", r.Key())
			require.Equal(t, "own", r.Header.Get("X-Own"))
			require.NotEmpty(t, r.Header.Get("X-Dialogue"))
			require.Equal(t, map[string]string{"configured": "first", "routed": "of-p"}[name], r.Model())
			require.InDelta(t, 0.5, gjson.GetBytes(r.Body, "temperature").Num, 0)
			require.Equal(t, name == "configured", gjson.GetBytes(r.Body, "top_p").Exists())
			require.Equal(t, name == "configured", gjson.GetBytes(r.Body, "seed").Exists())
			require.InDelta(t, map[string]float64{"configured": 0.5, "routed": 0.75}[name], gjson.GetBytes(r.Body, "frequency_penalty").Num, 0)
			require.Equal(t, name == "configured", gjson.GetBytes(r.Body, "presence_penalty").Exists())
			own := strings.Replace(plainBody, "{", `{"frequency_penalty":0,`, 1)
			p.get("own", own, how)
			require.Zero(t, gjson.GetBytes(p.upstream.Requests()[1].Body, "frequency_penalty").Num, "the client's own")

			p.upstream.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.NoAnswer() })
			p.ask("busy", plainBody, how)
			p.upstream.AwaitCount(t, 3)
			require.Contains(t, p.get("refused", plainBody, how).body, "all upstreams busy")
			require.NoError(t, p.bus.Cancel("busy"))
		})
	}
	t.Run("what the upstream says counts more", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		p.upstream.Handle(func(fakellm.Request) fakellm.Answer {
			return fakellm.Chat("<think>a</think>b").After(100 * time.Millisecond)
		})
		p.run(text)
		other := func(r *contract.Request) { r.Model, r.Decision.Model = "n", "n" }
		for i := range 3 {
			p.ask(fmt.Sprint("r", i), plainBody, other)
		}
		for i := range 3 {
			require.Equal(t, "<think>a</think>b", gjson.Get(p.await(fmt.Sprint("r", i)).body, "choices.0.message.content").Str)
		}
	})
}

// tiers of keys are what routing gets to know, and what premium models get.
func TestSettingsOfTiers(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.run(`
providers: [{id: p, url: "URL", tier: free, keys: [key-f, {value: key-p, tier: premium}], default_models: {free: small, premium: large}}]
routing: {priority: [p]}
`)
	bucket, err := p.bus.Bucket(t.Context(), subject.StateBucket)
	require.NoError(t, err)
	e, err := bucket.Get(t.Context(), dispatcherhealth.Key("d"))
	require.NoError(t, err)
	require.JSONEq(t, `{"free":1,"premium":1}`, gjson.GetBytes(e.Value, "providers.p.keys").Raw)
	for i := range 8 {
		require.Equal(t, 200, p.get(fmt.Sprint("r", i), plainBody, to("p")).status)
	}
	for _, r := range p.upstream.Requests() {
		require.Equal(t, "large key-p", r.Model()+" "+r.Key())
	}
}

// Section 13: what routing.* means for who is called after the decision.
func TestSettingsOfRouting(t *testing.T) {
	t.Parallel()
	overflow := fakellm.JSON(400, `{"error":{"message":"This model's maximum context length is 8192 tokens","type":"invalid_request_error","code":"context_length_exceeded"}}`)
	for name, tc := range map[string]struct {
		settings string
		answer   func(fakellm.Request) fakellm.Answer
		want     []string
	}{
		"priority":             {"{priority: [b, c], final_fallback: ''}", fails("of-a", "of-b"), []string{"of-a", "of-b", "of-c"}},
		"priority, turned":     {"{priority: [c, b], final_fallback: ''}", fails("of-a", "of-c"), []string{"of-a", "of-c", "of-b"}},
		"not in the list":      {"{priority: [b], final_fallback: ''}", fails("of-a", "of-b"), []string{"of-a", "of-b"}},
		"final_fallback":       {"{priority: [a], final_fallback: c}", fails("of-a"), []string{"of-a", "of-c"}},
		"large":                {"{priority: [a, b, c], large: c, final_fallback: ''}", nil, []string{"of-a", "of-c"}},
		"large, another":       {"{priority: [a, b, c], large: b, final_fallback: ''}", nil, []string{"of-a", "of-b"}},
		"large is not in need": {"{priority: [a, b, c], large: c, final_fallback: ''}", fails("of-a"), []string{"of-a", "of-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			answer := tc.answer
			if answer == nil {
				answer = func(r fakellm.Request) fakellm.Answer {
					if r.Model() == "of-a" {
						return overflow
					}
					return fakellm.Chat("ok")
				}
			}
			p.upstream.Handle(answer)
			p.run(threeProviders + "routing: " + tc.settings + "\n")
			p.get("r", plainBody, to("a"))
			require.Equal(t, tc.want, p.called())
		})
	}
}

// the operator's lists decide about the tier of a discovered model, and so about the default of a provider.
func TestSettingsOfModelTiers(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Offer("some-model", "other-model")
	models := p.models()
	p.run(`
providers: [{id: p, url: "URL", keys: [{value: k, tier: premium}]}]
routing: {priority: [p], premium_models: [other], free_models: [some]}
`)
	p.eventually(func() bool { return len(models.Book().Providers("other-model")) == 1 })
	for id, tier := range map[string]string{"other-model": contract.TierPremium, "some-model": contract.TierFree} {
		m, ok := models.Book().Find("p", id)
		require.True(t, ok)
		require.Equal(t, tier, m.Tier)
	}
	p.eventually(func() bool { return p.get(fmt.Sprint("r", time.Now().UnixNano()), plainBody, to("p")).status == 200 })
	require.Equal(t, "other-model", p.called()[0])
}

// The environment without a file: keys, addresses, timeouts, models and priority reach the dispatcher as those of a file do.
func TestSettingsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	load := func(t *testing.T, p *pipeline, vars map[string]string) {
		t.Helper()
		cfg, _, err := config.Load(configtest.Environment(t, vars, nil))
		require.NoError(t, err)
		for i := range cfg.Providers {
			if cfg.Providers[i].Pooled {
				cfg.Providers[i].URL = p.upstream.URL() + "/v1" // the vendors' own addresses are fixed
			}
		}
		p.runConfig(cfg)
	}
	t.Run("keys, models, tries", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		p.upstream.Handle(fails("flash"))
		load(t, p, map[string]string{
			"GEMINI_KEYS": "g-1,g-2,g-3", "GROQ_KEYS": `["q-1"]`, "CEREBRAS_KEYS": "c-1", "DEFAULT_FREE_MODEL": "flash", "MAX_RETRIES": "2",
			"PROVIDER_PRIORITY": "cerebras,groq",
		})
		require.Equal(t, 200, p.get("r", plainBody, to("gemini")).status)
		keys := map[string]int{}
		for _, r := range p.upstream.Requests() {
			keys[r.Key()[:1]]++
		}
		require.Equal(t, map[string]int{"g": 2, "c": 1}, keys)
	})
	t.Run("timeout", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		p.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
			if r.Key() == "q-1" {
				return fakellm.NoAnswer()
			}
			return fakellm.Chat("ok")
		})
		load(t, p, map[string]string{"GROQ_KEYS": "q-1", "CEREBRAS_KEYS": "c-1", "GROQ_TIMEOUT": "1"})
		start := time.Now()
		require.Equal(t, 200, p.get("r", plainBody, to("groq")).status)
		require.GreaterOrEqual(t, time.Since(start), time.Second)
		require.Equal(t, "c-1", p.upstream.Requests()[1].Key())
	})
	t.Run("a local engine is the last resort", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		p.upstream.Offer("llama3:8b")
		load(t, p, map[string]string{"OLLAMA_BASE_URL": p.upstream.URL(), "OLLAMA_KEYS": "password"})
		require.Equal(t, 200, p.get("r", plainBody, func(r *contract.Request) {
			r.Model, r.Decision = "auto", &contract.Decision{Agent: "ollama", Reason: contract.ReasonKeyAvailability}
		}).status)
		r := p.upstream.Requests()[0]
		require.Equal(t, "password", r.Key())
		require.Equal(t, "/v1/chat/completions", r.Path)
	})
	t.Run("premium model", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		load(t, p, map[string]string{"GEMINI_KEYS": "g-1", "DEFAULT_FREE_MODEL": "flash", "DEFAULT_PREMIUM_MODEL": "pro"})
		p.get("r", plainBody, to("gemini", func(d *contract.Decision) { d.Model, d.Premium = "pro", true }))
		p.get("r2", plainBody, to("gemini"))
		require.Equal(t, []string{"pro", "flash"}, p.called())
	})
}

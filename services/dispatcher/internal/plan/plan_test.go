package plan_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/modelindex"
)

func noModels() *modelindex.Book { return modelindex.NewBook() }

func plain(config.Provider, bool) dialect.Dialect { return dialect.OpenAI{} }

const providers = `
providers:
  - {id: gemini, keys: [gemini-key-1, {value: gemini-key-2, tier: premium}], default_models: {free: g-flash, premium: g-pro}}
  - {id: groq, keys: [groq-key-1], default_models: {free: q-llama}}
  - {id: cerebras, keys: [cerebras-key-1], default_models: {free: c-llama}}
  - {id: openrouter, key: k}
  - {id: ollama}
  - {id: opencode}
routing: {priority: [gemini, groq, cerebras, openrouter, ollama, opencode]}
`

var someModels = []modelindex.Listing{
	{Provider: "groq", Models: []modelindex.Model{{ID: "q-llama"}, {ID: "shared/model"}}},
	{Provider: "openrouter", Models: []modelindex.Model{{ID: "o-first"}, {ID: "o-vision", Can: contract.FeatureImages}, {ID: "shared/model"}}},
	{Provider: "ollama", Models: []modelindex.Model{{ID: "nomic-embed", Embedding: true}, {ID: "qwen3:8b"}, {ID: "moondream", Can: contract.FeatureImages}}},
}

func setup(t *testing.T, text string, listings ...modelindex.Listing) *plan.Planner {
	t.Helper()
	p, _ := planner(t, text, listings...)
	return p
}

func planner(t *testing.T, text string, listings ...modelindex.Listing) (*plan.Planner, map[string]*keypool.Pool) {
	t.Helper()
	cfg := configtest.Parse(t, text)
	pools := map[string]*keypool.Pool{}
	for _, p := range cfg.Providers {
		if p.Pooled {
			var keys []keypool.Key
			for _, k := range p.Keys {
				keys = append(keys, keypool.Key{Value: k.Value.Reveal(), Tier: k.Tier})
			}
			pools[p.ID] = keypool.New(keys, keypool.Cooldowns{Max: 24 * time.Hour}, nil)
		}
	}
	book := modelindex.NewBook(listings...)
	p, err := plan.New(plan.Config{Gateway: cfg, Pools: pools, Book: func() *modelindex.Book { return book }, Dialect: plain})
	require.NoError(t, err)
	return p, pools
}

// show writes a chain as provider:model, with marks for what else is known: P premium, L large, I images replaced, F final, E without an effort.
func show(c *execute.Chain) string {
	var words []string
	for _, l := range c.Links {
		word := []string{l.Channel.Provider + ":" + l.Model}
		for _, mark := range []struct {
			set  bool
			text string
		}{{l.Premium, "P"}, {l.Large, "L"}, {l.NoImages, "I"}, {l.LastResort, "F"}, {l.NoEffort, "E"}} {
			if mark.set {
				word = append(word, mark.text)
			}
		}
		words = append(words, strings.Join(word, "+"))
	}
	return strings.Join(words, " ")
}

func TestPlan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		decision contract.Decision
		want     string
	}{
		"R-128: decided provider, the rest of the priority, the last resort": {
			contract.Decision{Provider: "groq", Model: "q-llama"},
			"groq:q-llama gemini:g-pro+P+L cerebras:c-llama openrouter:o-first ollama:qwen3:8b+F",
		},
		"R-131: another provider uses its own model": {
			contract.Decision{Provider: "gemini", Model: "g-flash"},
			"gemini:g-flash+L groq:q-llama cerebras:c-llama openrouter:o-first ollama:qwen3:8b+F",
		},
		"R-086: the default is the premium model while there is a premium key": {
			contract.Decision{Provider: "gemini", PinProvider: true}, "gemini:g-pro+P+L",
		},
		"R-134: strict is alone": {contract.Decision{Provider: "cerebras", Model: "x", PinProvider: true, PinModel: true}, "cerebras:x"},
		"R-117: a named model moves only to who has the same": {
			contract.Decision{Provider: "groq", Model: "shared/model", PinModel: true}, "groq:shared/model openrouter:shared/model",
		},
		"C-04: a named model that nobody else has stays where it is": {
			contract.Decision{Provider: "gemini", Model: "gemini-1.5-pro", PinModel: true}, "gemini:gemini-1.5-pro+L",
		},
		"R-128: an agent that nobody insists on is followed by the cloud": {
			contract.Decision{Agent: "opencode"},
			"opencode:auto gemini:g-pro+P+L groq:q-llama cerebras:c-llama openrouter:o-first ollama:qwen3:8b+F",
		},
		"R-154: an agent chooses its model":              {contract.Decision{Agent: "ollama", PinProvider: true}, "ollama:qwen3:8b"},
		"R-154: a model that is not there":               {contract.Decision{Agent: "ollama", Model: "ollama-qwen", PinProvider: true}, "ollama:qwen3:8b"},
		"R-077: a model that is asked for by name":       {contract.Decision{Agent: "ollama", Model: "phi9", PinProvider: true, PinModel: true}, "ollama:phi9"},
		"an agent that is the last resort has one turn":  {contract.Decision{Agent: "ollama"}, "ollama:qwen3:8b+F gemini:g-pro+P+L groq:q-llama cerebras:c-llama openrouter:o-first"},
		"a provider that this dispatcher does not know":  {contract.Decision{Provider: "new", Model: "m"}, "gemini:g-pro+P+L groq:q-llama cerebras:c-llama openrouter:o-first ollama:qwen3:8b+F"},
		"C-25: images go where they are understood":      {contract.Decision{Provider: "gemini", Needs: contract.FeatureImages}, "gemini:g-pro+P+L openrouter:o-vision ollama:moondream+F groq:q-llama cerebras:c-llama"},
		"C-25: a named model gets what the client sends": {contract.Decision{Provider: "groq", Model: "shared/model", PinModel: true, Needs: contract.FeatureImages}, "groq:shared/model openrouter:shared/model"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chain, err := setup(t, providers, someModels...).Plan(&tt.decision, false)
			require.NoError(t, err)
			require.Equal(t, tt.want, show(chain))
		})
	}
}

// abilities are models of which more is told.
var abilities = []modelindex.Listing{
	{Provider: "gemini", Models: []modelindex.Model{{ID: "g-flash", Can: contract.FeaturesMedia | contract.FeatureTools | contract.FeatureThinking}}},
	{Provider: "groq", Models: []modelindex.Model{{ID: "q-llama", Cannot: contract.FeaturesMedia | contract.FeatureTools}, {ID: "q-new", Cannot: contract.FeatureAudio}}},
	{Provider: "openrouter", Models: []modelindex.Model{{ID: "o-plain", Cannot: contract.FeatureTools}, {ID: "o-tools", Can: contract.FeatureTools, Cannot: contract.FeatureImages}}},
	{Provider: "ollama", Models: []modelindex.Model{
		{ID: "llama3.2:3b", Cannot: contract.FeaturesMedia | contract.FeatureTools | contract.FeatureThinking},
		{ID: "qwen3:8b", Can: contract.FeatureTools | contract.FeatureThinking, Cannot: contract.FeaturesMedia},
	}},
}

// what is known of models is used: yes before unknown before no; sound and files never go to who can't take them while others are there.
func TestPlanByFeatures(t *testing.T) {
	t.Parallel()
	const tools, images, audio = contract.FeatureTools, contract.FeatureImages, contract.FeatureAudio
	for name, tt := range map[string]struct {
		decision contract.Decision
		want     string
	}{
		"nothing":                      {contract.Decision{Provider: "groq"}, "groq:q-llama gemini:g-flash+L cerebras:c-llama openrouter:o-plain ollama:llama3.2:3b+F+E"},
		"tools":                        {contract.Decision{Provider: "groq", Model: "q-llama", Needs: tools}, "groq:q-new gemini:g-flash+L cerebras:c-llama openrouter:o-tools ollama:qwen3:8b+F"},
		"images":                       {contract.Decision{Provider: "gemini", Needs: images}, "gemini:g-flash+L groq:q-new cerebras:c-llama openrouter:o-plain ollama:llama3.2:3b+I+F+E"},
		"images and tools":             {contract.Decision{Provider: "gemini", Needs: images | tools}, "gemini:g-flash+L groq:q-new cerebras:c-llama openrouter:o-plain ollama:llama3.2:3b+I+F+E"},
		"sound":                        {contract.Decision{Provider: "groq", Needs: audio}, "gemini:g-flash+L cerebras:c-llama openrouter:o-plain"},
		"sound, strict":                {contract.Decision{Provider: "groq", Needs: audio, PinProvider: true}, "groq:q-llama"},
		"a named model stays":          {contract.Decision{Provider: "groq", Model: "q-llama", Needs: audio | images, PinProvider: true, PinModel: true}, "groq:q-llama"},
		"an agent that is asked first": {contract.Decision{Agent: "ollama", Needs: tools, PinProvider: true}, "ollama:qwen3:8b"},
		"a named model can't think":    {contract.Decision{Agent: "ollama", Model: "llama3.2:3b", PinProvider: true, PinModel: true}, "ollama:llama3.2:3b+E"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chain, err := setup(t, providers, abilities...).Plan(&tt.decision, false)
			require.NoError(t, err)
			require.Equal(t, tt.want, strings.ReplaceAll(show(chain), "g-pro+P", "g-flash"))
		})
	}
}

// a refusal tells what no list does, for requests that need no less, and for an hour.
func TestLacks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := setup(t, providers, modelindex.Listing{Provider: "groq", Models: []modelindex.Model{{ID: "q-llama"}, {ID: "q-tools"}}})
		first := func(needs contract.Features) string {
			chain, err := p.Plan(&contract.Decision{Provider: "groq", Model: "q-llama", Needs: needs, PinProvider: true}, false)
			require.NoError(t, err)
			return chain.Links[0].Model
		}
		p.Lacks("groq", "q-llama", 0)
		require.Equal(t, "q-llama", first(contract.FeatureTools))
		p.Lacks("groq", "q-llama", contract.FeatureTools)
		require.Equal(t, "q-tools", first(contract.FeatureTools))
		require.Equal(t, "q-tools", first(contract.FeatureTools|contract.FeatureImages))
		require.Equal(t, "q-llama", first(0))
		require.Equal(t, "q-llama", first(contract.FeatureImages))
		p.Lacks("groq", "q-tools", contract.FeatureTools)
		require.Equal(t, "q-llama", first(contract.FeatureTools), "there is nothing else")
		<-time.After(time.Hour)
		require.Equal(t, "q-llama", first(contract.FeatureTools))
	})
}

// C-43, FO-07: a default model that is gone is not chosen again; the next one is, and other models of the provider are not touched.
func TestAbsentModels(t *testing.T) {
	t.Parallel()
	p := setup(t, providers, someModels...)
	p.Absent("groq", "q-llama")
	chain, err := p.Plan(&contract.Decision{Provider: "groq", Model: "q-llama", PinProvider: true}, false)
	require.NoError(t, err)
	require.Equal(t, "groq:shared/model", show(chain))
	p.Absent("groq", "shared/model")
	_, err = p.Plan(&contract.Decision{Provider: "groq", PinProvider: true}, false)
	require.Equal(t, fault.Failed, fault.From(err).Kind)
	chain, err = p.Plan(&contract.Decision{Provider: "groq", Model: "q-llama", PinProvider: true, PinModel: true}, false)
	require.NoError(t, err)
	require.Equal(t, "groq:q-llama", show(chain), "who asks by name gets the provider's own word")
}

func TestNothingToCall(t *testing.T) {
	t.Parallel()
	p := setup(t, `providers: [{id: x, url: "http://127.0.0.1:9/v1", key: k}]`)
	_, err := p.Plan(&contract.Decision{Model: "gone", Configured: true}, false)
	require.Equal(t, fault.ModelNotFound, fault.From(err).Kind)
	_, err = p.Plan(&contract.Decision{Provider: "x"}, false)
	require.Equal(t, fault.Failed, fault.From(err).Kind)
}

// a key that rests for one model serves the others, and a provider whose premium key rests serves what is not premium.
func TestModelsAtTheirLimit(t *testing.T) {
	t.Parallel()
	const text = `
providers:
  - {id: gemini, keys: [{value: gemini-key-1, tier: free}, {value: gemini-key-2, tier: premium}], default_models: {free: g-flash, premium: g-pro}}
routing: {priority: [gemini], aliases: {}}
`
	limit := classify.Verdict{Class: classify.Rate, Cooldown: classify.QuotaCooldown, PerModel: true, Wait: time.Hour, Stated: true}
	rest := func(t *testing.T, p *keypool.Pool, model string, want keypool.Want) {
		t.Helper()
		key, ok := p.Pick(model, want, nil)
		require.True(t, ok)
		key.Report(limit)
	}
	p, pools := planner(t, text)
	pool := pools["gemini"]
	for _, d := range []contract.Decision{
		{Provider: "gemini", PinProvider: true}, {Provider: "gemini", Model: "g-pro", Premium: true}, {Provider: "gemini", Model: "g-pro", Premium: true, PinProvider: true},
	} {
		chain, err := p.Plan(&d, false)
		require.NoError(t, err)
		require.Equal(t, "gemini:g-pro+P+L", show(chain))
	}
	rest(t, pool, "g-pro", keypool.PremiumKey)
	for _, d := range []contract.Decision{
		{Provider: "gemini", PinProvider: true}, {Provider: "gemini", Model: "g-pro", Premium: true}, {Provider: "gemini", Model: "g-pro", Premium: true, PinProvider: true},
	} {
		chain, err := p.Plan(&d, false)
		require.NoError(t, err)
		require.Equal(t, "gemini:g-flash+L", show(chain))
	}
	chain, err := p.Plan(&contract.Decision{Provider: "gemini", Model: "g-pro", Premium: true, PinProvider: true, PinModel: true}, false)
	require.NoError(t, err)
	require.Equal(t, "gemini:g-pro+P+L", show(chain), "what the client asks for by name is not replaced")
	rest(t, pool, "g-flash", keypool.AnyKey)
	rest(t, pool, "g-flash", keypool.AnyKey)
	chain, err = p.Plan(&contract.Decision{Provider: "gemini", PinProvider: true}, false)
	require.NoError(t, err)
	require.Equal(t, "gemini:g-pro+P+L", show(chain), "nothing is left, and the client is told how long to wait")
}

// the only provider is asked again although its model was missing a moment ago; R-094: a newer list knows better.
func TestAbsentModelsComeBack(t *testing.T) {
	t.Parallel()
	const text = `
providers: [{id: groq, keys: [groq-key-1], default_models: {free: q-llama}}, {id: ollama}]
routing: {priority: [groq], final_fallback: "", aliases: {}}
`
	p := setup(t, text, modelindex.Listing{Provider: "groq", Models: []modelindex.Model{{ID: "q-llama"}}},
		modelindex.Listing{Provider: "ollama", Models: []modelindex.Model{{ID: "llama3"}, {ID: "qwen3"}}})
	p.Absent("groq", "q-llama")
	chain, err := p.Plan(&contract.Decision{Provider: "groq", Model: "q-llama"}, false)
	require.NoError(t, err)
	require.Equal(t, "groq:q-llama", show(chain))
	p.Absent("ollama", "llama3")
	chain, err = p.Plan(&contract.Decision{Agent: "ollama", PinProvider: true}, false)
	require.NoError(t, err)
	require.Equal(t, "ollama:qwen3", show(chain), "agents have other models too")

	p = setup(t, text, modelindex.Listing{Provider: "groq", Models: []modelindex.Model{{ID: "q-llama"}}, At: time.Now().Add(time.Minute)})
	p.Absent("groq", "q-llama")
	p.Absent("groq", "other")
	chain, err = p.Plan(&contract.Decision{Provider: "groq", Model: "q-llama", PinProvider: true}, false)
	require.NoError(t, err)
	require.Equal(t, "groq:q-llama", show(chain))
}

// A provider whose models were all missing is asked again after a minute by who wants no other.
func TestStrictAsksAgain(t *testing.T) {
	t.Parallel()
	p := setup(t, providers, someModels...)
	synctest.Test(t, func(t *testing.T) {
		p.Absent("groq", "q-llama")
		p.Absent("groq", "shared/model")
		d := contract.Decision{Provider: "groq", PinProvider: true}
		_, err := p.Plan(&d, false)
		require.Error(t, err)
		<-time.After(time.Minute)
		chain, err := p.Plan(&d, false)
		require.NoError(t, err)
		require.Equal(t, "groq:q-llama", show(chain))
		chain, err = p.Plan(&contract.Decision{Provider: "groq"}, false)
		require.NoError(t, err)
		require.NotContains(t, show(chain), "groq", "as long as others are there")
	})
}

// those who have the named model too are tried by cost, and calls of a model have its price however they come about.
func TestPlanByCost(t *testing.T) {
	t.Parallel()
	var listings []modelindex.Listing
	for _, id := range []string{"gemini", "groq", "cerebras", "openrouter"} {
		listings = append(listings, modelindex.Listing{Provider: id, Models: []modelindex.Model{{ID: "shared"}, {ID: "own"}}})
	}
	p := setup(t, providers+`
upstreams:
  - {id: g, provider: groq, model: shared, cost: 3}
  - {id: c, provider: cerebras, model: shared, price: {input: 1, output: 1}}
  - {id: g2, provider: groq, model: shared, cost: 0, price: {input: 7}}
models: [{name: configured, upstreams: [g, c, g2]}]
`, listings...)
	chain, err := p.Plan(&contract.Decision{Provider: "gemini", Model: "shared", PinModel: true}, false)
	require.NoError(t, err)
	require.Equal(t, "gemini:shared+L cerebras:shared groq:shared openrouter:shared", show(chain), "who was decided stays first")
	price := func(l execute.Link) float64 {
		if l.Price == nil {
			return -1
		}
		return l.Price.Input
	}
	var prices []float64
	for _, l := range chain.Links {
		prices = append(prices, price(l))
	}
	require.Equal(t, []float64{-1, 1, 7, -1}, prices)
	chain, err = p.Plan(&contract.Decision{Model: "configured", Configured: true}, false)
	require.NoError(t, err)
	require.Equal(t, []float64{-1, 1, 7}, []float64{price(chain.Links[0]), price(chain.Links[1]), price(chain.Links[2])}, "each upstream has its own")
	chain, err = p.Plan(&contract.Decision{Provider: "groq", Model: "own", PinModel: true}, false)
	require.NoError(t, err)
	require.Equal(t, "groq:own gemini:own+L cerebras:own openrouter:own", show(chain), "in order of priority when nothing is known")
}

// a well-known model has an estimate where no price says more; who is tried first does not depend on it.
func TestPlanWithEstimates(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]float64{"true": 0.59, "false": -1} {
		p := setup(t, `
routing: {price_estimates: `+setting+`}
providers:
  - {id: groq, keys: [a, b]}
  - {id: own, url: "http://own/v1", key: k}
upstreams:
  - {id: g, provider: groq, model: llama-3.3-70b-versatile}
  - {id: o, provider: own, model: llama-3.3-70b-versatile, price: {input: 9}}
models: [{name: llama-3.3-70b-versatile, upstreams: [g, o]}]
`, modelindex.Listing{Provider: "groq", Models: []modelindex.Model{{ID: "llama-3.3-70b-versatile"}}},
			modelindex.Listing{Provider: "own", Models: []modelindex.Model{{ID: "llama-3.3-70b-versatile"}}})
		for name, d := range map[string]contract.Decision{
			"configured": {Model: "llama-3.3-70b-versatile", Configured: true},
			"routed":     {Provider: "groq", Model: "llama-3.3-70b-versatile", PinModel: true},
		} {
			chain, err := p.Plan(&d, false)
			require.NoError(t, err)
			prices := map[string]float64{}
			for _, l := range chain.Links {
				prices[l.Channel.Provider] = -1
				if l.Price != nil {
					prices[l.Channel.Provider] = l.Price.Input
				}
			}
			require.Equal(t, map[string]float64{"groq": want, "own": 9}, prices, name)
		}
	}
}

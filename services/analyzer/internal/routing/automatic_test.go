package routing_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/analyzer/internal/routing"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/modelindex"
)

var open = contract.ProviderState{Keys: map[string]int{contract.TierFree: 2}, Open: true}

// R-079..R-092, C-19, C-25
func TestAutomatic(t *testing.T) {
	t.Parallel()
	none, premium := keys(), keys(contract.TierFree, contract.TierPremium)
	sees := func(id, tier string) modelindex.Model {
		return modelindex.Model{ID: id, Tier: tier, Can: contract.FeatureImages}
	}
	reads := func(id, tier string) modelindex.Model { return modelindex.Model{ID: id, Tier: tier} }
	tests := map[string]struct {
		world  *world
		tokens int64
		images bool
		want   string
	}{
		//
		"one below the threshold": {vendors(), 8191, false, "groq [groq-default] token_count"},
		"at the threshold":        {vendors(), 8192, false, "gemini [g-flash] token_count"},
		"nothing to count":        {vendors(), 0, false, "groq [groq-default] token_count"},
		//
		"the first has no key":          {vendors().set(none, "groq"), 5, false, "cerebras [] token_count"},
		"the first has an open circuit": {vendors().set(open, "groq"), 5, false, "cerebras [] token_count"},
		"the first is not reported":     {vendors().forget("groq"), 5, false, "cerebras [] token_count"},
		"the first has no priority":     {vendors().prefer("gemini", "cerebras"), 5, false, "cerebras [] token_count"},
		//
		"no fast one is usable":        {vendors().set(none, "groq").set(open, "cerebras"), 5, false, "gemini [g-flash] key_availability"},
		"no keys at all, small":        {vendors().set(none, "gemini", "groq", "cerebras", "Mistral"), 5, false, "groq [groq-default] token_count"},
		"no keys at all, large":        {vendors().set(none, "gemini", "groq", "cerebras", "Mistral"), 9000, false, "gemini [g-flash] token_count"},
		"large without a key":          {vendors().set(none, "gemini"), 9000, false, "gemini [g-flash] token_count"},
		"large with an open circuit":   {vendors().set(open, "gemini"), 9000, false, "gemini [g-flash] token_count"},
		"only another provider usable": {vendors().set(none, "gemini", "groq", "cerebras").prefer("gemini", "groq", "cerebras", "Mistral"), 5, false, "Mistral [] key_availability"},
		"agents are usable, small":     {vendors().set(none, "gemini", "groq", "cerebras"), 5, false, "groq [groq-default] token_count"},
		"agents are usable and wanted": {vendors().set(none, "gemini", "groq", "cerebras").prefer("ollama", "groq"), 5, false, "groq [groq-default] token_count"},
		// what is not configured
		"no large one, large":            {vendors().without("gemini"), 9000, false, "groq [groq-default] key_availability"},
		"no large one, large, no key":    {vendors().without("gemini").set(none, "groq", "cerebras"), 9000, false, "groq [groq-default] token_count"},
		"no fast one, small":             {vendors().without("groq", "cerebras"), 5, false, "gemini [g-flash] key_availability"},
		"no fast one, small, no key":     {vendors().without("groq", "cerebras").set(none, "gemini"), 5, false, "gemini [g-flash] token_count"},
		"neither":                        {vendors().without("gemini", "groq", "cerebras").prefer("ollama", "Mistral"), 5, false, "Mistral [] key_availability"},
		"neither, no key":                {vendors().without("gemini", "groq", "cerebras").prefer("ollama", "Mistral").set(none, "Mistral"), 5, false, "Mistral [] key_availability"},
		"agents alone":                   {vendors().without("gemini", "groq", "cerebras"), 5, false, "agent ollama [] key_availability"},
		"agents alone, large":            {vendors().without("gemini", "groq", "cerebras"), 9000, false, "agent ollama [] key_availability"},
		"agents alone, no fallback":      {vendors().without("gemini", "groq", "cerebras", "ollama"), 5, false, "agent opencode [] key_availability"},
		"agents where the operator says": {vendors().small("ollama"), 5, false, "agent ollama [] token_count"},
		//
		"a premium key":                  {vendors().set(premium, "gemini"), 9000, false, "gemini [g-pro] token_count premium"},
		"a premium key behind a circuit": {vendors().set(contract.ProviderState{Keys: premium.Keys, Open: true}, "gemini"), 9000, false, "gemini [g-flash] token_count"},
		"discovery corrects the default": {vendors().offer("gemini", reads("new-flash", contract.TierFree)), 9000, false, "gemini [new-flash] token_count"},
		"discovery fills a gap":          {vendors().set(none, "groq").offer("cerebras", reads("big", contract.TierPremium), reads("c", contract.TierFree)), 5, false, "cerebras [c] token_count"},
		"nothing but a premium model":    {vendors().set(none, "groq").offer("cerebras", reads("big", contract.TierPremium)), 5, false, "cerebras [big] token_count premium"},
		"discovery and a premium key":    {vendors().set(premium, "gemini").offer("gemini", reads("f", contract.TierFree), reads("p", contract.TierPremium)), 9000, false, "gemini [p] token_count premium"},
		"the fast ones know tiers too":   {vendors().set(premium, "groq").offer("groq", reads("f", contract.TierFree), reads("p", contract.TierPremium)), 5, false, "groq [p] token_count premium"},
		"a default that discovery knows": {vendors().offer("gemini", reads("x", contract.TierFree), reads("g-flash", contract.TierFree)), 9000, false, "gemini [g-flash] token_count"},
		// R-079, B-13, C-25
		"images":                              {vendors(), 5, true, "gemini [g-flash] image_present"},
		"images, premium":                     {vendors().set(premium, "gemini"), 5, true, "gemini [g-pro] image_present premium"},
		"images, the default takes none":      {vendors().offer("gemini", reads("g-flash", "free"), sees("g-pro", "premium"), sees("g-eye", "free")), 5, true, "gemini [g-eye] image_present"},
		"images, the default takes them":      {vendors().offer("gemini", sees("g-eye", "free"), sees("g-flash", "free")), 5, true, "gemini [g-flash] image_present"},
		"images, only a premium one":          {vendors().offer("gemini", reads("g-flash", "free"), sees("g-pro", "premium")), 5, true, "gemini [g-pro] image_present premium"},
		"images, an embedding model is none":  {vendors().offer("gemini", modelindex.Model{ID: "clip", Can: contract.FeatureImages, Embedding: true}, reads("g-flash", "free")), 5, true, "gemini [g-flash] image_present"},
		"images, another takes them":          {vendors().set(none, "gemini").offer("cerebras", reads("c", "free"), sees("c-eye", "free")), 5, true, "cerebras [c-eye] image_present"},
		"images, another without a key":       {vendors().set(none, "gemini", "cerebras").offer("cerebras", sees("c-eye", "free")), 5, true, "groq [groq-default] token_count"},
		"images, an agent takes them":         {vendors().set(open, "gemini").offer("ollama", reads("llama3", "free"), sees("llava", "free")), 5, true, "agent ollama [llava] image_present"},
		"images, a provider before an agent":  {vendors().set(open, "gemini").prefer("ollama", "groq").offer("ollama", sees("llava", "free")).offer("groq", sees("scout", "free")), 5, true, "groq [scout] image_present"},
		"images, the agent is gone":           {vendors().set(open, "gemini", "ollama").offer("ollama", sees("llava", "free")), 5, true, "groq [groq-default] token_count"},
		"images, nobody takes them, small":    {vendors().set(none, "gemini"), 5, true, "groq [groq-default] token_count"},
		"images, nobody takes them, large":    {vendors().set(none, "gemini"), 9000, true, "gemini [g-flash] token_count"},
		"images, no large provider":           {vendors().without("gemini").offer("groq", sees("scout", "free")), 9000, true, "groq [scout] image_present"},
		"images, agents alone":                {vendors().without("gemini", "groq", "cerebras").offer("ollama", sees("llava", "free")), 5, true, "agent ollama [llava] image_present"},
		"images, agents alone that see not":   {vendors().without("gemini", "groq", "cerebras"), 5, true, "agent ollama [] key_availability"},
		"images, no such provider, no agents": {vendors().without("gemini", "ollama", "opencode"), 5, true, "groq [groq-default] token_count"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := tt.world.decide(routing.Question{Operation: contract.Chat, Model: "auto", Tokens: tt.tokens, Needs: needs(tt.images)})
			requireDecision(t, tt.want, d, err)
			require.Equal(t, needs(tt.images), d.Needs, "the dispatcher must know of images that nobody takes")
			require.Equal(t, tt.tokens, d.Tokens)
		})
	}
}

// needs are those of a request with images.
func needs(images bool) contract.Features {
	if images {
		return contract.FeatureImages
	}
	return 0
}

// inside a provider the model is chosen by the tiers of its keys; the provider stays, whatever its state.
func TestInsideAProvider(t *testing.T) {
	t.Parallel()
	eye := modelindex.Model{ID: "g-eye", Tier: contract.TierFree, Can: contract.FeatureImages}
	tests := map[string]struct {
		world  *world
		model  string
		images bool
		want   string
	}{
		"free keys":                  {vendors(), "gemini/auto", false, "gemini [g-flash] model_hint strict"},
		"a premium key":              {vendors().set(keys(contract.TierPremium), "gemini"), "gemini/auto", false, "gemini [g-pro] model_hint strict premium"},
		"no key":                     {vendors().set(keys(), "groq"), "groq/auto", false, "groq [groq-default] model_hint strict"}, // C-19
		"images":                     {vendors().offer("gemini", modelindex.Model{ID: "g-flash"}, eye), "gemini/auto", true, "gemini [g-eye] model_hint strict"},
		"images, the provider alone": {vendors().offer("gemini", modelindex.Model{ID: "g-flash"}, eye), "gemini", true, "gemini [g-eye] model_hint"},
		"images, an agent":           {vendors().offer("ollama", eye), "ollama/auto", true, "agent ollama [g-eye] model_hint strict"},
		"images, a named model":      {vendors().offer("gemini", eye), "gemini/g-flash", true, "gemini [g-flash] model_hint strict named"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := tt.world.decide(routing.Question{Operation: contract.Chat, Model: tt.model, Needs: needs(tt.images), Tokens: 9000})
			requireDecision(t, tt.want, d, err)
		})
	}
}

// an agent that is not named is no answer while anything else is configured.
func TestNothingForAutomaticRouting(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*world{
		"no provider":                   {},
		"none in the priority list":     vendors().prefer().small().without("gemini", "ollama"),
		"the others are not configured": vendors().without("gemini", "groq", "cerebras", "ollama", "opencode"),
	} {
		for _, images := range []bool{false, true} {
			_, err := w.decide(routing.Question{Model: "auto", Needs: needs(images)})
			f := fault.From(err)
			require.Equal(t, fault.Failed, f.Kind, name)
			require.Equal(t, 503, f.Status())
			require.Contains(t, f.Message, "routing.priority")
			requireClean(t, f.Message)
		}
	}
}

// R-081, scenario 17: the fast providers take turns; other requests take none.
func TestFastProvidersAlternate(t *testing.T) {
	t.Parallel()
	w := vendors()
	var got []string
	for range 4 {
		for _, q := range []routing.Question{{Model: "auto"}, {Model: "auto", Tokens: 9000}, {Model: "groq/x"}, {Model: "auto", Needs: contract.FeatureImages}} {
			d, err := w.decide(q)
			require.NoError(t, err)
			if q.Model == "auto" && d.Reason == contract.ReasonTokenCount && q.Tokens == 0 {
				got = append(got, d.Provider)
			}
		}
	}
	require.Equal(t, []string{"groq", "cerebras", "groq", "cerebras"}, got)
	w.set(open, "groq")
	for range 4 {
		d, err := w.chat("auto")
		require.NoError(t, err)
		require.Equal(t, "cerebras", d.Provider)
	}
}

// the counter is exact under concurrency.
func TestTurnsAreExact(t *testing.T) {
	t.Parallel()
	w := vendors()
	r := routing.New(&w.cfg)
	const workers, each = 8, 501
	counts := make([]map[string]int, workers)
	var wg sync.WaitGroup
	for i := range workers {
		counts[i] = map[string]int{}
		wg.Go(func() {
			for range each {
				d, err := r.Decide(routing.Question{Model: "auto"}, w.state, &w.turn)
				if err != nil {
					t.Error(err)
				}
				counts[i][d.Provider]++
			}
		})
	}
	wg.Wait()
	total := map[string]int{}
	for _, c := range counts {
		for id, n := range c {
			total[id] += n
		}
	}
	require.Equal(t, map[string]int{"groq": workers * each / 2, "cerebras": workers * each / 2}, total)
}

// a decision leaves the state as it is.
func TestStateIsNotTouched(t *testing.T) {
	t.Parallel()
	w, untouched := vendors(), vendors()
	r := routing.New(&w.cfg)
	for _, model := range []string{"auto", "gemini/auto", "gpt-4o", "nothing", "ollama-x", "groq"} {
		for _, images := range []bool{false, true} {
			_, _ = r.Decide(routing.Question{Model: model, Needs: needs(images)}, w.state, &w.turn)
		}
	}
	require.Equal(t, untouched.state, w.state)
	require.Equal(t, untouched.cfg, w.cfg)
}

// forget leaves providers out of what is known.
func (w *world) forget(ids ...string) *world {
	for _, id := range ids {
		delete(w.state.Providers, id)
	}
	return w
}

func (w *world) prefer(ids ...string) *world {
	w.cfg.Routing.Priority = ids
	return w
}

func (w *world) small(ids ...string) *world {
	w.cfg.Routing.Fast = ids
	return w
}

// The lists may name one provider twice, and ids may differ in case only.
func TestOddConfigurations(t *testing.T) {
	t.Parallel()
	w := vendors().prefer("groq", "groq", "cerebras").small("groq", "groq", "cerebras")
	for _, want := range []string{"groq", "cerebras", "groq", "cerebras"} {
		d, err := w.chat("auto")
		require.NoError(t, err)
		require.Equal(t, want, d.Provider)
	}
	w.cfg.Providers = append(w.cfg.Providers, config.Provider{ID: "GROQ"})
	for model, want := range map[string]string{"groq/x": "groq", "GROQ/x": "GROQ", "Groq/x": "groq"} {
		d, err := w.chat(model)
		require.NoError(t, err)
		require.Equal(t, want, d.Provider)
	}
}

package dispatcher

import (
	"fmt"

	"hydrallm/services/dispatcher/internal/agent/openclaw"
	"hydrallm/services/dispatcher/internal/agent/opencode"
	"hydrallm/services/dispatcher/internal/agent/program"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/services/dispatcher/internal/dialect/ollama"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/shared/config"
	"hydrallm/shared/openai"
)

// kind is how a dialect of the configuration is spoken.
type kind struct {
	// make is called once for a dispatcher. environ is that of programs; nil for none.
	make func(client dialect.Client, environ []string) dialect.Dialect
	// compatible says that it is OpenAI's protocol on the wire, which each vendor speaks with habits of its own.
	compatible bool
}

// kinds are those of config.Dialects, by the same words.
var kinds = map[string]kind{
	"openai":    {make: func(c dialect.Client, _ []string) dialect.Dialect { return dialect.OpenAI{Client: c} }, compatible: true},
	"ollama":    {make: func(c dialect.Client, _ []string) dialect.Dialect { return ollama.New(c) }, compatible: true},
	"anthropic": {make: func(c dialect.Client, _ []string) dialect.Dialect { return anthropic.New(c) }},
	"gemini": {make: func(c dialect.Client, _ []string) dialect.Dialect {
		return dialect.Batched{Dialect: dialect.Translated{Client: c, Translator: gemini.Translator{}}, Most: googleInputs}
	}},
	"opencode": {make: func(c dialect.Client, environ []string) dialect.Dialect {
		var cfg opencode.Config
		if environ != nil {
			cfg = opencode.Config{Program: "opencode", Env: program.Environment(environ, "OPENCODE_")}
		}
		return opencode.New(cfg, c)
	}},
	"openclaw": {make: func(c dialect.Client, environ []string) dialect.Dialect {
		var cfg openclaw.Config
		if environ != nil {
			cfg = openclaw.Config{Program: "openclaw", Env: program.Environment(environ, "OPENCLAW_")}
		}
		return openclaw.New(cfg, c)
	}},
}

// googleInputs is how many texts Google embeds in one request: "at most 100 requests can be in one batch", in both of its protocols.
const googleInputs = 100

// dialects is what speaks to providers. What it holds is shared by all of them.
type dialects struct {
	made       map[string]dialect.Dialect
	signatures *compat.Signatures
}

// newDialects makes what the providers need. environ is that of programs; nil for none.
func newDialects(providers []config.Provider, client dialect.Client, environ []string) (*dialects, error) {
	d := &dialects{made: map[string]dialect.Dialect{}, signatures: compat.NewSignatures()}
	for _, p := range providers {
		k, ok := kinds[p.Dialect]
		if !ok {
			return nil, fmt.Errorf("provider %q: nobody speaks the dialect %q", p.ID, p.Dialect)
		}
		if d.made[p.Dialect] == nil {
			d.made[p.Dialect] = k.make(client, environ)
		}
	}
	return d, nil
}

// close waits for what dialects still have to do after their calls.
func (d *dialects) close() {
	for _, made := range d.made {
		if c, ok := made.(interface{ Close() }); ok {
			c.Close()
		}
	}
}

// of gives the dialect of a provider. A request that is routed is fitted to its vendor. One for a configured model goes as it is, apart from what
// Gemini is sure to refuse: conversations without the signatures that clients lose, and what the model at hand does not take.
func (d *dialects) of(p config.Provider, routed bool) dialect.Dialect {
	base, vendor := d.made[p.Dialect], plan.Vendor(p)
	if !kinds[p.Dialect].compatible || !routed && vendor != "gemini" {
		return base
	}
	if vendor == "gemini" {
		base = dialect.Batched{Dialect: base, Most: googleInputs}
	}
	return compat.Dialect{AsIs: !routed, Dialect: base, Vendor: vendor, Signatures: d.signatures, Keep: patched(p)}
}

// patched tells which members of a request the operator has set, and so nobody changes.
func patched(p config.Provider) func(name string) bool {
	patch, err := openai.CompilePatch(p.Patch)
	if err != nil || patch.Empty() { // the planner reports an error
		return nil
	}
	return patch.Has
}

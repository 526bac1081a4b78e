package dispatcher

import (
	"hydrallm/services/dispatcher/internal/agent/openclaw"
	"hydrallm/services/dispatcher/internal/agent/opencode"
	"hydrallm/services/dispatcher/internal/agent/program"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/services/dispatcher/internal/dialect/ollama"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/config"
	"hydrallm/shared/openai"
)

// dialects makes what speaks to providers. What it holds is shared by all of them.
type dialects struct {
	client     *upstream.Client
	signatures *compat.Signatures
	ollama     *ollama.Dialect
	opencode   *opencode.Agent
	openclaw   *openclaw.Agent
}

// newDialects makes them around one client. environ is that of programs; nil for none.
func newDialects(client *upstream.Client, environ []string) *dialects {
	code, claw := opencode.Config{}, openclaw.Config{}
	if environ != nil {
		code = opencode.Config{Program: "opencode", Env: program.Environment(environ, "OPENCODE_")}
		claw = openclaw.Config{Program: "openclaw", Env: program.Environment(environ, "OPENCLAW_")}
	}
	return &dialects{
		client: client, signatures: compat.NewSignatures(), ollama: ollama.New(client),
		opencode: opencode.New(code, client), openclaw: openclaw.New(claw, client),
	}
}

// googleInputs is how many texts Google embeds in one request: "at most 100 requests can be in one batch", in both of its protocols.
const googleInputs = 100

// of gives the dialect of a provider. A request that is routed is fitted to its vendor. One for a configured model goes as it is, apart from what
// Gemini is sure to refuse: conversations without the signatures that clients lose, and what the model at hand does not take.
func (d *dialects) of(p config.Provider, routed bool) dialect.Dialect {
	switch p.Dialect {
	case "anthropic":
		return dialect.Translated{Client: d.client, Translator: anthropic.Translator{}}
	case "gemini":
		return dialect.Batched{Dialect: dialect.Translated{Client: d.client, Translator: gemini.Translator{}}, Most: googleInputs}
	case "opencode":
		return d.opencode
	case "openclaw":
		return d.openclaw
	}
	var base dialect.Dialect = dialect.OpenAI{Client: d.client}
	if p.Dialect == "ollama" {
		base = d.ollama
	}
	vendor := plan.Vendor(p)
	if !routed && vendor != "gemini" {
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

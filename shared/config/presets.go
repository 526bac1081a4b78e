package config

// preset is what a well-known provider id brings along. The configuration overrides each part.
type preset struct {
	dialect string            // where the configuration names none
	urls    map[string]string // by dialect
	key     string            // what a local engine takes for a key, or ""
	pooled  bool              // wants keys, of which there may be many; they may also come later
	env     string            // begins the names of its environment variables
	keys    []string          // further variables that hold its keys
	models  DefaultModels     // for automatic routing until discovery has answered
}

// presets by provider id. Addresses of vendors are those of their documentation; local engines listen on their default ports. The default
// models are what the vendors offered in November 2026; discovery corrects them.
var presets = map[string]preset{
	"gemini": {dialect: "openai", pooled: true, env: "GEMINI", keys: []string{"GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"}, urls: map[string]string{
		"openai": "https://generativelanguage.googleapis.com/v1beta/openai",
		"gemini": "https://generativelanguage.googleapis.com/v1beta",
	}, models: DefaultModels{Free: "gemini-flash-latest", Premium: "gemini-2.5-pro"}},
	"groq": {
		dialect: "openai", pooled: true, env: "GROQ", urls: map[string]string{"openai": "https://api.groq.com/openai/v1"},
		models: DefaultModels{Free: "openai/gpt-oss-120b"},
	},
	"cerebras": {
		dialect: "openai", pooled: true, env: "CEREBRAS", urls: map[string]string{"openai": "https://api.cerebras.ai/v1"},
		models: DefaultModels{Free: "gpt-oss-120b"},
	},
	"ollama": {dialect: "ollama", key: "ollama", env: "OLLAMA", urls: map[string]string{
		"ollama": "http://localhost:11434/v1",
		"openai": "http://localhost:11434/v1",
	}},
	"opencode": {dialect: "opencode", env: "OPENCODE", urls: map[string]string{"opencode": "http://localhost:4096"}},
	"openclaw": {dialect: "openclaw", env: "OPENCLAW", urls: map[string]string{
		"openclaw": "http://localhost:18789/v1",
		"openai":   "http://localhost:18789/v1",
	}},

	"openai":     {dialect: "openai", env: "OPENAI", urls: map[string]string{"openai": "https://api.openai.com/v1"}},
	"anthropic":  {dialect: "anthropic", env: "ANTHROPIC", urls: map[string]string{"anthropic": "https://api.anthropic.com", "openai": "https://api.anthropic.com/v1"}},
	"openrouter": {dialect: "openai", env: "OPENROUTER", urls: map[string]string{"openai": "https://openrouter.ai/api/v1"}},
	"deepseek":   {dialect: "openai", env: "DEEPSEEK", urls: map[string]string{"openai": "https://api.deepseek.com/v1", "anthropic": "https://api.deepseek.com/anthropic"}},
	"mistral":    {dialect: "openai", env: "MISTRAL", urls: map[string]string{"openai": "https://api.mistral.ai/v1"}},
	"minimax":    {dialect: "openai", env: "MINIMAX", urls: map[string]string{"openai": "https://api.minimax.io/v1", "anthropic": "https://api.minimax.io/anthropic"}},
	"vllm":       {dialect: "openai", env: "VLLM", urls: map[string]string{"openai": "http://localhost:8000/v1", "anthropic": "http://localhost:8000"}},
	"llamacpp":   {dialect: "openai", env: "LLAMACPP", urls: map[string]string{"openai": "http://localhost:8080/v1", "anthropic": "http://localhost:8080"}},
	"lmstudio":   {dialect: "openai", env: "LMSTUDIO", urls: map[string]string{"openai": "http://localhost:1234/v1", "anthropic": "http://localhost:1234"}},
}

// Known says whether a provider id is one that brings settings of its own.
func Known(id string) bool {
	_, ok := presets[id]
	return ok
}

// Preset is what programs that write configurations have to know of a well-known provider.
type Preset struct {
	ID           string
	KeyVariables []string // environment variables that hold its keys, one or a list
	URLVariable  string   // the one that holds its address
	Local        bool     // it runs on this machine, if nothing else is said
}

// Presets gives the well-known providers, in the order in which a start without a file lists them.
func Presets() []Preset {
	var all []Preset
	for _, id := range presetIDs() {
		p := presets[id]
		all = append(all, Preset{ID: id, KeyVariables: p.keyVariables(), URLVariable: p.env + "_BASE_URL", Local: p.local()})
	}
	return all
}

// presetIDs is the order in which a start without a file lists the well-known providers.
func presetIDs() []string {
	return []string{
		"gemini", "groq", "cerebras", "openai", "anthropic", "openrouter", "mistral", "deepseek", "minimax",
		"vllm", "llamacpp", "lmstudio", "ollama", "opencode", "openclaw",
	}
}

package config

// preset is what a well-known provider id brings along. The configuration overrides each part.
type preset struct {
	dialect string            // where the configuration names none
	urls    map[string]string // by dialect
	key     string            // what a local engine takes for a key, or ""
	pooled  bool              // wants keys, of which there may be many; they may also come later
	env     string            // begins the names of its environment variables
}

// presets by provider id. Addresses of vendors are those of their documentation; local engines listen on their default ports.
var presets = map[string]preset{
	"gemini": {dialect: "openai", pooled: true, env: "GEMINI", urls: map[string]string{
		"openai": "https://generativelanguage.googleapis.com/v1beta/openai",
		"gemini": "https://generativelanguage.googleapis.com/v1beta",
	}},
	"groq":     {dialect: "openai", pooled: true, env: "GROQ", urls: map[string]string{"openai": "https://api.groq.com/openai/v1"}},
	"cerebras": {dialect: "openai", pooled: true, env: "CEREBRAS", urls: map[string]string{"openai": "https://api.cerebras.ai/v1"}},
	"ollama": {dialect: "ollama", key: "ollama", env: "OLLAMA", urls: map[string]string{
		"ollama": "http://localhost:11434/v1",
		"openai": "http://localhost:11434/v1",
	}},
	"opencode": {dialect: "opencode", env: "OPENCODE", urls: map[string]string{"opencode": "http://localhost:4096"}},
	"openclaw": {dialect: "openclaw", env: "OPENCLAW", urls: map[string]string{
		"openclaw": "http://localhost:18789/v1",
		"openai":   "http://localhost:18789/v1",
	}},
}

// presetIDs is the order in which the environment is read, and the default priority.
func presetIDs() []string {
	return []string{"gemini", "groq", "cerebras", "ollama", "opencode", "openclaw"}
}

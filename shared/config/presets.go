package config

// preset is what a well-known provider id brings along; the configuration overrides each part.
type preset struct {
	dialect string
	url     string
	key     string // a fixed key that the local engine expects, or ""
	keysVar string // environment variable with its keys, for the start without a file
	urlVar  string // environment variable with its address
}

// presets by provider id. Addresses are those of the vendors' documentation; the local engines listen on their default ports.
var presets = map[string]preset{
	"gemini":   {dialect: "openai", url: "https://generativelanguage.googleapis.com/v1beta/openai", keysVar: "GEMINI_KEYS"},
	"groq":     {dialect: "openai", url: "https://api.groq.com/openai/v1", keysVar: "GROQ_KEYS"},
	"cerebras": {dialect: "openai", url: "https://api.cerebras.ai/v1", keysVar: "CEREBRAS_KEYS"},
	"ollama":   {dialect: "ollama", url: "http://localhost:11434/v1", key: "ollama", urlVar: "OLLAMA_BASE_URL"},
	"opencode": {dialect: "opencode", url: "http://localhost:4096", urlVar: "OPENCODE_BASE_URL"},
	"openclaw": {dialect: "openclaw", url: "http://localhost:18789", urlVar: "OPENCLAW_BASE_URL"},
}

// presetOrder is the order in which the environment is read.
var presetOrder = []string{"gemini", "groq", "cerebras", "ollama", "opencode", "openclaw"}

func dialects() []string {
	return []string{"openai", "gemini", "ollama", "anthropic", "opencode", "openclaw"}
}

func tiers() []string { return []string{"free", "standard", "premium", "experimental", "unknown"} }

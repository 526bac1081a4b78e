package dispatcher

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

// neither a key nor a masked piece of one is left in a text; words that stand for no key are no secrets.
func TestSecretsAreRemoved(t *testing.T) {
	t.Parallel()
	env := config.Environment{Lookup: func(string) (string, bool) { return "", false }}
	cfg, _, err := env.Parse("config.yaml", []byte(`
providers:
  - {id: a, url: "http://h/v1", keys: [pool-key-A-8277e0910d75]}
  - {id: b, url: "http://h/v1", key: lm-studio}
  - {id: ollama}
`))
	require.NoError(t, err)
	s := newSecrets(cfg)
	s.add("later-key-1234567890", "short")
	for text, want := range map[string]string{
		"":                                       "",
		"wrong pool-key-A-8277e0910d75!":         "wrong [redacted]!",
		"wrong later-key-1234567890":             "wrong [redacted]",
		"Incorrect API key: po***75. See h":      "Incorrect API key: [redacted]. See h",
		"key 'pool-key...0d75' is bad":           "key '[redacted]' is bad",
		"key ************0d75":                   "key [redacted]",
		"key later-ke…":                          "key [redacted]",
		"**bold** and ... dots, x***y":           "**bold** and ... dots, x***y",
		"short":                                  "short",
		"ollama pull nope (see ollama.com)":      "ollama pull nope (see ollama.com)",
		"No models loaded in lm-studio. Load it": "No models loaded in lm-studio. Load it",
	} {
		require.Equal(t, want, s.Replace(text))
	}
}

package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const page = "../../docs/configuration.md"

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// section gives the part of the page below a heading of the second level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n## "+heading+"\n")
	require.True(t, found, heading)
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

func yamlBlock(t *testing.T, text string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "```yaml\n")
	require.True(t, found)
	block, _, _ := strings.Cut(rest, "```")
	return block
}

// The documented defaults are the defaults.
func TestDocumentedDefaults(t *testing.T) {
	t.Parallel()
	text := yamlBlock(t, section(t, read(t, page), "Every key with its default"))
	c, warnings, err := parse(nil, text)
	require.NoError(t, err)
	require.Len(t, warnings, 1, "%v", warnings)
	require.Equal(t, "server.client_keys", warnings[0].Path)
	require.Equal(t, stored(t, sound(t, "")), stored(t, c), "but for where the values come from")
}

// The examples are sound, without a warning.
func TestExamples(t *testing.T) {
	t.Parallel()
	vars := map[string]string{
		"CLIENT_KEY": "client", "ADMIN_KEY": "admin", "ROUTER_API_KEY": "r", "GROQ_KEYS": "a,b", "GEMINI_KEY_1": "g1", "GEMINI_KEY_2": "g2",
		"POSTGRES_PASSWORD": "pw",
	}
	c, warnings, err := parse(vars, yamlBlock(t, section(t, read(t, page), "A complete example")))
	require.NoError(t, err)
	require.Empty(t, warnings)
	m, ok := c.Model("my-gpt")
	require.True(t, ok)
	require.Equal(t, []string{"local-qwen", "routerai-gpt4o"}, m.Upstreams)
	groq, _ := c.Provider("groq")
	require.Len(t, groq.Keys, 2)

	c, warnings, err = parse(map[string]string{
		"HYDRALLM_CLIENT_KEY": "a,b", "OPENAI_API_KEY": "k", "DATABASE_URL": "postgres://u:p@db/hydrallm", "NATS_URL": "nats://nats:4222",
	}, read(t, "../../deploy/config.example.yaml"))
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Len(t, c.Server.ClientKeys, 2)
	require.Equal(t, "0.0.0.0:8100", c.Server.Bind())
	m, ok = c.Model("default-chat")
	require.True(t, ok)
	require.True(t, m.Usable())
}

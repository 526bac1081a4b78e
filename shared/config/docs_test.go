package config_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
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
	require.Len(t, warnings, 1)
	require.Equal(t, "server.client_keys", warnings[0].Path)
	want := sound(t, "")
	require.Empty(t, c.Server.ClientKeys)
	require.Empty(t, c.Server.CORSOrigins)
	c.Server.ClientKeys, c.Server.CORSOrigins, c.Web.AllowHosts = nil, nil, want.Web.AllowHosts
	require.Equal(t, want, c)
}

var known = regexp.MustCompile(`\(known: (.*)\)`)

// keys asks the reader itself which keys a mapping at some place has.
func keys(t *testing.T, text string) []string {
	t.Helper()
	c := config.Environment{Lookup: lookup(nil)}
	_, warnings, _ := c.Parse("config.yaml", []byte(strings.ReplaceAll(text, "?", "{nothing-has-this-name: 1}")))
	for _, w := range warnings {
		if strings.HasSuffix(w.Path, "nothing-has-this-name") {
			return strings.Split(known.FindStringSubmatch(w.Message)[1], ", ")
		}
	}
	t.Fatalf("no mapping in %s", text)
	return nil
}

// Every key is on the page: in the table of its section, and in the file with all defaults.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	text := read(t, page)
	all := section(t, text, "Every key with its default")
	for _, name := range keys(t, "?") {
		require.Contains(t, all, "\n"+name+":", name)
		places := map[string][]string{
			"providers": {"providers: [?]", "providers: [{default_models: ?}]"}, "upstreams": {"upstreams: [?]"}, "models": {"models: [?]"},
			"resilience": {"resilience: ?", "resilience: {breaker: {channel: ?}}", "resilience: {cooldowns: ?}"},
			"web":        {"web: ?", "web: {mcp: ?}", "web: {openserp: ?}", "web: {intent: ?}"},
		}[name]
		if places == nil {
			places = []string{name + ": ?"}
		}
		for _, place := range places {
			for _, key := range keys(t, place) {
				require.Contains(t, section(t, text, name), fmt.Sprintf("\n| `%s` |", key), place)
			}
		}
	}
	without := section(t, text, "Start without a file")
	for _, name := range config.Settings() {
		require.Contains(t, without, "`"+name+"`")
	}
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

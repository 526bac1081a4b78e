package firstconfig_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/firstconfig"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
)

// keys are found by the names that the gateway knows; several of one provider are a pool, and the same one twice is one.
func TestKeys(t *testing.T) {
	t.Parallel()
	found := firstconfig.Keys(configtest.Variables(map[string]string{
		"GOOGLE_API_KEY": "g1", "GEMINI_API_KEY": "g2", "GROQ_API_KEYS": "q1,q2", "OPENAI_API_KEY": " ", "MISTRAL_API_KEY": "m", "MISTRAL_KEY": "m",
		"DEEPSEEK_API_KEY": "d", "DEEPSEEK_BASE_URL": "https://mirror.example/v1", "OPENROUTER_API_KEY": "o", "OPENROUTER_BASE_URL": "http://localhost:8100/v1",
		"OLLAMA_API_KEY": "no cloud", "UNKNOWN_API_KEY": "x",
	}))
	require.Equal(t, []firstconfig.Found{
		{ID: "gemini", Variables: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}},
		{ID: "groq", Variables: []string{"GROQ_API_KEYS"}},
		{ID: "openrouter", Variables: []string{"OPENROUTER_API_KEY"}},
		{ID: "mistral", Variables: []string{"MISTRAL_API_KEY"}},
		{ID: "deepseek", Variables: []string{"DEEPSEEK_API_KEY"}, URLFrom: "DEEPSEEK_BASE_URL"},
	}, found)
}

// servers are those that list models, and no gateway like this one.
func TestServers(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"11434": `{"object": "list", "data": [{"id": "qwen3:8b"}, {"id": "qwen3:8b"}, {"id": "a\nb"}, {"id": ""}, {"id": "${X}"}, {"id": "llama3"}]}`,
		"1234":  `{"data": [{"id": "auto"}, {"id": "x"}]}`, "8000": `<html>`, "8080": `{"models": []}`,
	}
	at := map[string]string{}
	for port, answer := range answers {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/models" {
				_, _ = w.Write([]byte(answer))
			}
		}))
		t.Cleanup(server.Close)
		at[port] = strings.TrimPrefix(server.URL, "http://")
	}
	found := firstconfig.Servers(t.Context(), func(port string) string { return at[port] })
	require.Equal(t, []firstconfig.Found{{ID: "ollama", Models: []string{"qwen3:8b", "llama3"}}}, found)
}

// what is written passes the check, whatever was found and answered, and has keys as variables alone.
func TestConfig(t *testing.T) {
	t.Parallel()
	env := map[string]string{"GEMINI_API_KEY": "secret-g", "GROQ_API_KEYS": "secret-q1,secret-q2", "OPENAI_API_KEY": "secret-o", "OPENAI_KEY": "secret-o2", "OPENAI_BASE_URL": "https://mirror.example/v1"}
	local := []firstconfig.Found{{ID: "ollama", Models: []string{"qwen3:8b", `odd "name": #1`, "shared"}}, {ID: "lmstudio", Models: []string{"shared", "yes", "1e3"}}}
	all := append(firstconfig.Keys(configtest.Variables(env)), local...)
	tests := map[string]struct {
		found   []firstconfig.Found
		answers string
		want    func(t *testing.T, c *config.Config)
	}{
		"nothing": {nil, "", func(t *testing.T, c *config.Config) {
			t.Helper()
			require.Equal(t, "ollama", c.Providers[0].ID)
		}},
		"everything as proposed": {all, "", func(t *testing.T, c *config.Config) {
			t.Helper()
			require.Len(t, c.Providers, 5)
			require.Len(t, c.Models, 5)
			m, ok := c.Model("shared")
			require.True(t, ok)
			require.Len(t, m.Upstreams, 2)
			require.Equal(t, map[string]string{"chat": "auto"}, c.Routing.Aliases)
			require.NotEmpty(t, c.Server.AdminKey)
			require.Empty(t, c.Server.ClientKeys)
			p, _ := c.Provider("openai")
			require.Len(t, p.Keys, 2)
			require.Equal(t, "https://mirror.example/v1", p.URL)
		}},
		"answers": {all, "2, 4,9\n2, 4\nqwen3:8b\nassistant\nn\nyes\nx\n9100\n", func(t *testing.T, c *config.Config) {
			t.Helper()
			require.Equal(t, []string{"groq", "ollama"}, []string{c.Providers[0].ID, c.Providers[1].ID})
			require.Len(t, c.Providers, 2)
			require.Equal(t, map[string]string{"assistant": "qwen3:8b"}, c.Routing.Aliases)
			require.Empty(t, c.Server.AdminKey)
			require.Len(t, c.Server.ClientKeys, 1)
			require.Equal(t, 9100, c.Server.Port)
			require.Equal(t, "ollama", c.Routing.FinalFallback)
		}},
		"nonsense for ever": {all, strings.Repeat("nonsense / \x01\n", 40), func(t *testing.T, c *config.Config) {
			t.Helper()
			require.Equal(t, 8100, c.Server.Port)
			require.Len(t, c.Providers, 5)
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := firstconfig.NewPlan(tt.found)
			var out strings.Builder
			if tt.answers != "" {
				plan.Ask(strings.NewReader(tt.answers), &out)
			}
			text, warnings, err := plan.Config(configtest.Variables(env))
			require.NoError(t, err, string(text))
			for _, w := range warnings {
				require.Contains(t, w.Message, "of the environment these have no effect", string(text)) // of providers that were left out
			}
			require.NotContains(t, string(text)+out.String(), "secret-")
			vars := map[string]string{"ADMIN_API_KEY": "admin", "CLIENT_API_KEYS": "client"}
			maps.Copy(vars, env)
			if !plan.AdminKey {
				delete(vars, "ADMIN_API_KEY")
			}
			c, _, err := config.Environment{Dir: t.TempDir(), Lookup: configtest.Variables(vars)}.Parse("config.yaml", text)
			require.NoError(t, err)
			if !plan.ClientKeys {
				c.Server.ClientKeys = nil // those of the environment
			}
			tt.want(t, c)
		})
	}
}

// FuzzConfig: no name of a model makes a configuration that fails the check.
func FuzzConfig(f *testing.F) {
	f.Add("qwen3:8b", "auto\nchat\n")
	f.Add("a: b # c", "x\ny\nn\nn\n0\n")
	f.Fuzz(func(t *testing.T, model, answers string) {
		plan := firstconfig.NewPlan([]firstconfig.Found{{ID: "ollama", Models: firstconfig.Usable(model)}})
		plan.Ask(strings.NewReader(answers), &strings.Builder{})
		text, _, err := plan.Config(configtest.Variables(nil))
		require.NoError(t, err, string(text))
	})
}

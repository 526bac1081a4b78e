package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

// the names that everybody has in the environment: one key or a list, in any case.
func TestKeysOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"GEMINI", "GROQ", "CEREBRAS", "OPENAI", "ANTHROPIC", "OPENROUTER", "MISTRAL", "DEEPSEEK", "MINIMAX"} {
		for _, name := range []string{prefix + "_API_KEY", prefix + "_API_KEYS", prefix + "_KEYS", prefix + "_KEY", strings.ToLower(prefix) + "_api_key"} {
			c, warnings, err := config.Load(environment(t, map[string]string{name: "k1,k2", "HOST": "localhost"}, nil))
			require.NoError(t, err, name)
			require.Empty(t, warnings, name)
			p, ok := c.Provider(strings.ToLower(prefix))
			require.True(t, ok, name)
			require.Len(t, p.Keys, 2, name)
			require.True(t, p.Pooled, name)
			require.False(t, c.Empty(), name)
		}
	}
	c, _, err := config.Load(environment(t, map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://llm:8000/v1", "GOOGLE_API_KEY": "g", "GEMINI_API_KEY": " "}, nil))
	require.NoError(t, err)
	openai, _ := c.Provider("openai")
	require.Equal(t, "http://llm:8000/v1", openai.URL)
	require.True(t, openai.Pooled, "also of one key")
	gemini, ok := c.Provider("gemini")
	require.True(t, ok, "a blank variable is unset")
	require.Equal(t, config.Secret("g"), gemini.Keys[0].Value)
}

// Local engines exist when their address is given.
func TestLocalEnginesOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for id, prefix := range map[string]string{"vllm": "VLLM", "llamacpp": "LLAMACPP", "lmstudio": "LMSTUDIO", "ollama": "OLLAMA", "openclaw": "OPENCLAW"} {
		c, _, err := config.Load(environment(t, map[string]string{prefix + "_BASE_URL": "http://box:1/v1", prefix + "_API_KEY": "k"}, nil))
		require.NoError(t, err)
		p, ok := c.Provider(id)
		require.True(t, ok, id)
		require.Equal(t, "http://box:1/v1", p.URL)
		require.False(t, p.Pooled, id)
		require.Equal(t, config.Secret("k"), p.Keys[0].Value)
	}
}

// Where the environment is that of a client of this gateway, neither its address nor its key is used.
func TestEnvironmentOfAClient(t *testing.T) {
	t.Parallel()
	c, warnings, err := config.Load(environment(t, map[string]string{
		"OPENAI_BASE_URL": "http://localhost:8000/v1", "OPENAI_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:8000", "HOST": "localhost",
	}, nil))
	require.NoError(t, err)
	require.True(t, c.Empty())
	require.Equal(t, []string{
		"OPENAI_BASE_URL: leads to this gateway itself: openai is not used", "ANTHROPIC_BASE_URL: leads to this gateway itself: anthropic is not used",
	}, lines(warnings))
}

// what looks like a key and is not read is named; its value is not.
func TestKeysThatAreNotRead(t *testing.T) {
	t.Parallel()
	vars := map[string]string{
		"HOST": "localhost", "GROQ_API_KEY": "k", "GORQ_API_KEY": "hidden", "TOGETHER_API_KEY": "hidden", "fireworks_api_key": "hidden", "XAI_API_TOKEN": "hidden",
		"HOME": "/", "SSH_AUTH_SOCK": "s", "AWS_SECRET_ACCESS_KEY": "hidden", "CLIENT_API_KEYS": "c", "ADMIN_API_KEY": "a",
	}
	env := environment(t, vars, map[string]string{".env": "COHERE_API_KEY=hidden\nMISTRAL_API_KEY=k\n"})
	env.Names = func() []string { return slices.Collect(maps.Keys(vars)) }
	_, warnings, err := config.Load(env)
	require.NoError(t, err)
	require.Equal(t, []string{
		"COHERE_API_KEY: looks like the key of a provider, and is not read: its provider needs a configuration file",
		"GORQ_API_KEY: looks like the key of a provider, and is not read: did you mean GROQ_API_KEY?",
		"TOGETHER_API_KEY: looks like the key of a provider, and is not read: its provider needs a configuration file",
		"XAI_API_TOKEN: looks like the key of a provider, and is not read: its provider needs a configuration file",
		"fireworks_api_key: looks like the key of a provider, and is not read: its provider needs a configuration file",
	}, lines(warnings))
}

// the keys of the gateway itself come from the environment, unless the file has some.
func TestClientKeysOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"CLIENT_API_KEYS", "CLIENT_API_KEY", "HYDRALLM_CLIENT_KEY", "hydrallm_client_keys"} {
		vars := map[string]string{name: "a, b"}
		for text, want := range map[string][]config.Secret{
			"\nlog: {}": {"a", "b"}, "\nserver: {client_keys: [c]}": {"c"}, "\nserver: {client_keys: []}": {}, "\nserver: {client_keys: [a, b]}": {"a", "b"},
			"\nserver: {client_keys: \"${" + name + "}\"}": {"a", "b"},
		} {
			c, warnings, err := parse(vars, text)
			require.NoError(t, err)
			require.Equal(t, want, c.Server.ClientKeys, text)
			ignored := slices.ContainsFunc(warnings, func(f config.Finding) bool { return strings.Contains(f.Message, "is ignored") })
			require.Equal(t, len(want) < 2, ignored, text)
		}
		c, _, err := config.Load(environment(t, vars, nil))
		require.NoError(t, err)
		require.Equal(t, []config.Secret{"a", "b"}, c.Server.ClientKeys)
	}
}

// a file wins over the environment, and says what it does not use.
func TestFileWinsLoudly(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"GROQ_API_KEY": "k", "groq_timeout": "3", "NATS_URL": "nats://n", "PORT": "1", "OPENAI_API_KEY": "x", "PROVIDER_PRIORITY": " ", "DEBUG": "1", "HOME": "/"}
	_, warnings, err := parse(vars, `{server: {host: localhost, admin_key: a}, providers: [{id: groq, key: "${GROQ_API_KEY}"}], nats: {url: "${NATS_URL}"}}`)
	require.NoError(t, err)
	require.Equal(t, []string{
		"config.yaml:1: of the environment these have no effect beside a file, unless it names them as ${NAME}: GROQ_TIMEOUT, OPENAI_API_KEY, PORT",
	}, lines(warnings))
}

// Both endings of YAML files are found.
func TestEndingsOfTheFile(t *testing.T) {
	t.Parallel()
	c, warnings, err := config.Load(environment(t, nil, map[string]string{"config.yml": "server: {host: localhost, port: 7}"}))
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, 7, c.Server.Port)
	require.True(t, strings.HasSuffix(c.Source, "config.yml"))

	both := map[string]string{"config.yaml": "server: {host: localhost, port: 8}", "config.yml": "server: {port: 7}"}
	c, warnings, err = config.Load(environment(t, nil, both))
	require.NoError(t, err)
	require.Equal(t, 8, c.Server.Port)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0].String(), "config.yaml: is used, and there is ")

	_, _, err = config.Load(environment(t, map[string]string{"CONFIG_PATH": "config.yaml"}, map[string]string{"config.yml": ""}))
	require.ErrorContains(t, err, "config.yml")
	env := environment(t, map[string]string{"CONFIG_PATH": "other.yaml"}, both)
	env.File = "config.yml"
	c, _, err = config.Load(env)
	require.NoError(t, err)
	require.Equal(t, 7, c.Server.Port, "the command line wins")
}

// The line of a .env file that can't be read is named, whatever is around it.
func TestLineOfDotenv(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A=1\nB=2\nthis is no assignment\nC=3\n":                  "line 3 ",
		"A=\"one\ntwo\"\n\n# comment\nsecret, no assignment\nB=1": "line 5 ",
		"A=1\nB=\"secret without an end\nC=2\nD=3\n":              "line 2 ",
		"secret-word x\n": "line 1 ",
		strings.Repeat("A=1\n", 300) + "secret-word x\n": "line 301 ",
	} {
		_, _, err := config.Load(environment(t, nil, map[string]string{".env": text}))
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, ".env")
		require.NotContains(t, err.Error(), "secret")
	}
}

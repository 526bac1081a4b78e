package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

// C-01: which file is read.
func TestWhichFile(t *testing.T) {
	t.Parallel()
	files := map[string]string{"config.yaml": "server: {port: 7000}", "other.yaml": "server: {port: 7001}"}

	t.Run("config.yaml of the working directory", func(t *testing.T) {
		t.Parallel()
		env := environment(t, map[string]string{"CONFIG_PATH": " "}, files)
		c, _, err := config.Load(env)
		require.NoError(t, err)
		require.Equal(t, 7000, c.Server.Port)
		require.Equal(t, filepath.Join(env.Dir, "config.yaml"), c.Source)
	})
	t.Run("a relative path", func(t *testing.T) {
		t.Parallel()
		env := environment(t, map[string]string{"CONFIG_PATH": "other.yaml"}, files)
		c, _, err := config.Load(env)
		require.NoError(t, err)
		require.Equal(t, 7001, c.Server.Port)
		require.Equal(t, filepath.Join(env.Dir, "other.yaml"), c.Source)
	})
	t.Run("an absolute path", func(t *testing.T) {
		t.Parallel()
		other := environment(t, nil, files)
		c, _, err := config.Load(environment(t, map[string]string{"CONFIG_PATH": filepath.Join(other.Dir, "other.yaml")}, files))
		require.NoError(t, err)
		require.Equal(t, 7001, c.Server.Port)
	})
	t.Run("a missing file is named with its absolute path", func(t *testing.T) {
		t.Parallel()
		env := environment(t, map[string]string{"CONFIG_PATH": "gone.yaml"}, files)
		_, _, err := config.Load(env)
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, filepath.Join(env.Dir, "gone.yaml"))
		_, _, err = config.Load(config.Environment{Lookup: lookup(map[string]string{"CONFIG_PATH": "gone.yaml"})})
		wd, wdErr := os.Getwd()
		require.NoError(t, wdErr)
		require.ErrorContains(t, err, filepath.Join(wd, "gone.yaml"), "no directory is the working directory")
	})
	t.Run("a directory is an error", func(t *testing.T) { // as left behind by a mount of a file that isn't there
		t.Parallel()
		env := environment(t, nil, nil)
		require.NoError(t, os.Mkdir(filepath.Join(env.Dir, "config.yaml"), 0o700))
		_, _, err := config.Load(env)
		require.ErrorContains(t, err, filepath.Join(env.Dir, "config.yaml"))
	})
	t.Run("a huge file is an error", func(t *testing.T) {
		t.Parallel()
		for size, fails := range map[int]bool{1 << 20: false, 1<<20 + 1: true} {
			_, _, err := config.Load(environment(t, nil, map[string]string{"config.yaml": strings.Repeat("#", size)}))
			require.Equal(t, fails, err != nil, size)
		}
	})
	t.Run("findings name the whole path", func(t *testing.T) {
		t.Parallel()
		env := environment(t, nil, map[string]string{"config.yaml": "server: {port: 0}"})
		_, _, err := config.Load(env)
		require.ErrorContains(t, err, filepath.Join(env.Dir, "config.yaml")+":1: server.port")
	})
}

// variables are replaced whole or embedded, once, in addresses, keys, headers and paths, never in patches.
func TestSubstitution(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"K": "secret", "H": "127.0.0.1", "E": "", "TWICE": "${K}", "NL": "end\n"}
	c, warnings, err := parse(vars, `
server: {host: "${H}", admin_key: "${K}", client_keys: ["a-${K}", "${TWICE}"], cors_origins: ["http://${H}"]}
providers:
  - {id: p, url: "http://${H}:1/v1", key: "pre-${K}-post$", headers: {X-A: "${K}${K}"}, patch: {x: "${K}"}}
  - {id: ollama, url: "${E}", key: "${NL}"}
web: {searxng_url: "http://${H}", mcp: {url: "http://${H}", token: "${K}"}, engines: {bing: "http://${H}"}, allow_hosts: ["${H}"],
  intent: {embedding_url: "http://${H}", patterns_dir: "${K}/p"}}
sessions: {database: "postgres://u:${K}@${H}/d"}
nats: {url: "nats://${H}", listen: "${H}:1", credentials: "/run/${K}", store_dir: "${K}/s"}
log: {file: "${K}.log"}
telemetry: {otlp_endpoint: "http://${H}"}
`)
	require.NoError(t, err)
	require.Equal(t, []string{
		"config.yaml:9: nats.listen: has no effect beside nats.url", "config.yaml:9: nats.store_dir: has no effect beside nats.url",
	}, lines(warnings))
	require.Equal(t, "127.0.0.1", c.Server.Host)
	require.Equal(t, config.Secret("secret"), c.Server.AdminKey)
	require.Equal(t, []config.Secret{"a-secret", "${K}"}, c.Server.ClientKeys)
	require.Equal(t, []string{"http://127.0.0.1"}, c.Server.CORSOrigins)
	p := c.Providers[0]
	require.Equal(t, "http://127.0.0.1:1/v1", p.URL)
	require.Equal(t, config.Secret("pre-secret-post$"), p.Keys[0].Value)
	require.Equal(t, config.Secret("secretsecret"), p.Headers["X-A"])
	require.JSONEq(t, `{"x":"${K}"}`, string(p.Patch))
	require.Equal(t, "http://localhost:11434/v1", c.Providers[1].URL, "empty is as if absent")
	require.Equal(t, config.Secret("end"), c.Providers[1].Keys[0].Value)
	require.Equal(t, "http://127.0.0.1", c.Web.SearxNGURL)
	require.Equal(t, config.MCP{URL: "http://127.0.0.1", Token: "secret", Fallback: true, Timeout: 30 * time.Second}, c.Web.MCP)
	require.Equal(t, "http://127.0.0.1", c.Web.Engines["bing"])
	require.Equal(t, []string{"127.0.0.1"}, c.Web.AllowHosts)
	require.Equal(t, "http://127.0.0.1", c.Web.Intent.EmbeddingURL)
	require.Equal(t, "secret/p", c.Web.Intent.PatternsDir)
	require.Equal(t, config.Secret("postgres://u:secret@127.0.0.1/d"), c.Sessions.Database)
	require.Equal(t, config.NATS{URL: "nats://127.0.0.1", Listen: "127.0.0.1:1", Credentials: "/run/secret", StoreDir: "secret/s", Replicas: 1}, c.NATS)
	require.Equal(t, "secret.log", c.Log.File)
	require.Equal(t, "http://127.0.0.1", c.Telemetry.OTLPEndpoint)
}

// Beside a file the environment gives the admin key and the debug switch, and nothing else.
func TestEnvironmentBesideFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		vars     map[string]string
		text     string
		key      config.Secret
		debug    bool
		warnings []string
	}{
		"from the environment": {map[string]string{"ADMIN_API_KEY": " adm ", "DEBUG": "TRUE"}, "log: {}", "adm", true, []string{}},
		"in lower case":        {map[string]string{"admin_api_key": "adm", "debug": "1"}, "log: {}", "adm", true, []string{}},
		"an empty key is none": {map[string]string{"ADMIN_API_KEY": " ", "DEBUG": ""}, "log: {}", "", false, []string{}},
		"the file wins": { // C-01
			map[string]string{"ADMIN_API_KEY": "env"},
			"server: {admin_key: file}", "file", false,
			[]string{"config.yaml:1: server.admin_key: ADMIN_API_KEY is ignored: the file has another key"},
		},
		"both agree":          {map[string]string{"ADMIN_API_KEY": "k"}, "server: {admin_key: k}", "k", false, []string{}},
		"debug from the file": {map[string]string{"DEBUG": "false", "ADMIN_API_KEY": "k"}, "server: {debug: true}", "k", true, []string{}},
		"nothing else": {
			map[string]string{
				"PORT": "9", "HOST": "127.0.0.1", "GEMINI_KEYS": "g", "LOG_LEVEL": "debug", "MAX_RETRIES": "9", "ADMIN_API_KEY": "k", // CFG-31:
				"UPSTREAM_URL": "http://x", "ROUTER_API_KEY": "x", "EXCLUDED_PROVIDERS": "x", "THINKING_MODELS": "x", "SGLANG_COMPAT": "1",
			},
			"log: {}", "k", false,
			[]string{"config.yaml:1: of the environment these have no effect beside a file, unless it names them as ${NAME}: GEMINI_KEYS, HOST, PORT, MAX_RETRIES, LOG_LEVEL"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, warnings, err := parse(tc.vars, tc.text)
			require.NoError(t, err)
			require.Equal(t, tc.key, c.Server.AdminKey)
			require.Equal(t, tc.debug, c.Server.Debug)
			require.Equal(t, tc.warnings, lines(warnings))
			require.Equal(t, "0.0.0.0:8100", c.Server.Bind())
			require.Empty(t, c.Providers)
		})
	}
	_, _, err := parse(map[string]string{"DEBUG": "perhaps"}, "")
	require.ErrorContains(t, err, `DEBUG: must be true or false (got "perhaps")`)
}

// .env gives what the environment does not, also to ${...}.
func TestDotenv(t *testing.T) {
	t.Parallel()
	file := "\ufeff# keys\nGROQ_KEYS='a,b'\nexport PORT=9001\r\nROUTER_KEY=\"from-file\"\nHOST=1.2.3.4\n"
	c, _, err := config.Load(environment(t, map[string]string{"HOST": "127.0.0.1"}, map[string]string{".env": file}))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:9001", c.Server.Bind(), "the real environment wins")
	groq, _ := c.Provider("groq")
	require.Len(t, groq.Keys, 2)

	c, _, err = config.Load(environment(t, map[string]string{"GROQ_KEYS": ""}, map[string]string{".env": file}))
	require.NoError(t, err)
	_, ok := c.Provider("groq")
	require.True(t, ok, "set to nothing is not set")

	c, _, err = config.Load(environment(t, nil, map[string]string{".env": file, "config.yaml": `server: {admin_key: "${ROUTER_KEY}"}`}))
	require.NoError(t, err)
	require.Equal(t, config.Secret("from-file"), c.Server.AdminKey)

	c, _, err = config.Load(environment(t, nil, map[string]string{".env": "CONFIG_PATH=x.yaml", "x.yaml": "server: {port: 5}"}))
	require.NoError(t, err)
	require.Equal(t, 5, c.Server.Port)

	_, _, err = config.Load(environment(t, nil, map[string]string{".env": "GROQ_KEYS=\"secret-word\nX"}))
	require.ErrorContains(t, err, ".env: line 1 is no NAME=value")
	require.NotContains(t, err.Error(), "secret-word")
	_, _, err = config.Load(environment(t, nil, map[string]string{".env": string(bytes.Repeat([]byte("#"), 1<<20+1))}))
	require.ErrorContains(t, err, "larger than 1048576 bytes")
}

// The start without a file (section 13 of the requirements).
func TestQuickStart(t *testing.T) {
	t.Parallel()
	c, warnings, err := config.Load(environment(t, map[string]string{
		"GEMINI_KEYS": "g1, g2,,g1", "GROQ_KEYS": `["q1","q,2"]`, "CEREBRAS_KEYS": " ", "OPENCODE_BASE_URL": "http://code:4096/",
		"OLLAMA_BASE_URL": "http://box:11434", "GROQ_TIMEOUT": "20", "DEFAULT_FREE_MODEL": "flash", "DEFAULT_PREMIUM_MODEL": "pro",
		"HOST": "127.0.0.1", "PORT": "9000", "LOCALE": "KO", "log_level": "INFO", "DEBUG": "on", "ADMIN_API_KEY": " a${b ",
		"PROVIDER_PRIORITY": "groq, gemini", "MAX_TOKENS_FAST_MODEL": "100", "FREE_MODELS": `["a"]`, "PREMIUM_MODELS": "b", "MAX_RETRIES": "2",
		"ENABLE_AUTO_WEB_FETCH": "false", "WEB_BACKEND": "mcp", "SEARCH_MCP_URL": "http://m/mcp", "SEARCH_MCP_TOKEN": "tok",
		"SEARCH_MCP_FALLBACK": "false", "SEARCH_PROVIDERS": "searxng,openserp", "SEARXNG_BASE_URL": "http://s", "OPENSERP_BASE_URL": "http://o",
		"OPENSERP_ENGINE": "bing", "WEB_CACHE_TTL_HOURS": "2", "EMBEDDING_MODEL": "e", "DATA_DIR": "/data", "MAX_SESSIONS": "7",
		"SESSION_RETENTION_DAYS": "8", "SESSION_COMPACT_THRESHOLD": "9", "SESSION_RECENT_WINDOW": "10", "NATS_URL": "nats://n:4222",
	}, nil))
	require.NoError(t, err)
	require.Equal(t, []string{"GEMINI_KEYS[2]: empty, ignored", "GEMINI_KEYS[3]: the same again, ignored", "GROQ_KEYS[1]: holds a comma or a semicolon: several keys are a list"},
		lines(warnings))
	require.Equal(t, "environment", c.Source)
	require.False(t, c.Empty())

	gemini, ok := c.Provider("gemini")
	require.True(t, ok)
	require.Equal(t, []config.Key{{Value: "g1", Tier: "unknown"}, {Value: "g2", Tier: "unknown"}}, gemini.Keys)
	require.True(t, gemini.Pooled)
	require.Equal(t, config.DefaultModels{Free: "flash", Premium: "pro"}, gemini.DefaultModels)
	require.Equal(t, 240*time.Second, gemini.HeadersTimeout)
	require.Equal(t, 300*time.Second, gemini.RequestTimeout)
	groq, ok := c.Provider("groq")
	require.True(t, ok)
	require.Equal(t, []config.Key{{Value: "q1", Tier: "unknown"}, {Value: "q,2", Tier: "unknown"}}, groq.Keys)
	require.Equal(t, 20*time.Second, groq.HeadersTimeout)
	_, ok = c.Provider("cerebras")
	require.False(t, ok)
	ollama, ok := c.Provider("ollama")
	require.True(t, ok)
	require.Equal(t, "http://box:11434/v1", ollama.URL)
	require.Equal(t, []config.Key{{Value: "ollama", Tier: "unknown"}}, ollama.Keys)
	require.False(t, ollama.Pooled)
	opencode, ok := c.Provider("opencode")
	require.True(t, ok)
	require.Equal(t, "http://code:4096", opencode.URL)

	require.Equal(t, "127.0.0.1:9000", c.Server.Bind())
	require.Equal(t, "ko", c.Server.Locale)
	require.True(t, c.Server.Debug)
	require.Equal(t, config.Secret("a${b"), c.Server.AdminKey, "nothing is replaced in the environment itself")
	require.Equal(t, "info", c.Log.Level)
	require.Equal(t, []string{"groq", "gemini"}, c.Routing.Priority)
	require.Equal(t, 100, c.Routing.MaxTokensFast)
	require.Equal(t, []string{"a"}, c.Routing.FreeModels)
	require.Equal(t, []string{"b"}, c.Routing.PremiumModels)
	require.Equal(t, 2, c.Resilience.MaxRetries)
	require.False(t, c.Web.Enabled)
	require.Equal(t, "mcp", c.Web.Backend)
	require.Equal(t, config.MCP{URL: "http://m/mcp", Token: "tok", Timeout: 30 * time.Second}, c.Web.MCP)
	require.Equal(t, []string{"searxng", "openserp"}, c.Web.Search)
	require.Equal(t, "http://s", c.Web.SearxNGURL)
	require.Equal(t, config.OpenSERP{URL: "http://o", Engine: "bing"}, c.Web.OpenSERP)
	require.Equal(t, 2*time.Hour, c.Web.CacheTTL)
	require.Equal(t, "e", c.Web.Intent.EmbeddingModel)
	require.Equal(t, config.Sessions{Database: "sqlite:/data/hydrallm.db", CompactThreshold: 9, RecentWindow: 10, Compressor: "extractive", CompressorModel: "auto", RetentionDays: 8, MaxSessions: 7, StoreResponses: true, SystemContext: true}, c.Sessions)
	require.Equal(t, config.NATS{URL: "nats://n:4222", StoreDir: "/data/nats", Replicas: 1}, c.NATS)
}

// R-381, C-01: with nothing set, a local Ollama is all there is, on port 8000, and it is known that nobody set anything.
func TestQuickStartOfNothing(t *testing.T) {
	t.Parallel()
	c, _, err := config.Load(environment(t, nil, nil))
	require.NoError(t, err)
	require.Equal(t, "0.0.0.0:8000", c.Server.Bind())
	require.True(t, c.Empty())
	require.Contains(t, c.EmptyHint(), "GEMINI_API_KEY")
	require.Len(t, c.Providers, 1)
	require.Equal(t, []string{"ollama"}, c.Automatic())
	require.Equal(t, "http://localhost:11434/v1", c.Providers[0].URL)

	c, _, err = config.Load(environment(t, map[string]string{"GROQ_KEYS": "k"}, nil))
	require.NoError(t, err)
	require.False(t, c.Empty())
	_, ok := c.Provider("ollama")
	require.True(t, ok, "the final fallback (R-133)")
	c, _, err = config.Load(environment(t, map[string]string{"OLLAMA_BASE_URL": "http://localhost:11434/v1"}, nil))
	require.NoError(t, err)
	require.False(t, c.Empty())
	c, _, err = config.Load(environment(t, map[string]string{"DATABASE_URL": "postgres://u@h/d", "DATA_DIR": "x"}, nil))
	require.NoError(t, err)
	require.Equal(t, config.Secret("postgres://u@h/d"), c.Sessions.Database)
}

// All at once, with the name of the variable, without secrets.
func TestQuickStartErrors(t *testing.T) {
	t.Parallel()
	_, _, err := config.Load(environment(t, map[string]string{
		"PORT": "no", "LOCALE": "fr", "DEBUG": "perhaps", "GROQ_KEYS": `["secret-word"`, "OLLAMA_BASE_URL": "box", "GROQ_TIMEOUT": "0",
		"DATABASE_URL": "secret-word", "SESSION_RETENTION_DAYS": "0",
	}, nil))
	var invalid *config.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.ElementsMatch(t, []string{
		`PORT: must be a whole number from 1 to 65535 (got "no")`,
		`LOCALE: must be one of en, ko (got "fr")`,
		`DEBUG: must be true or false (got "perhaps")`,
		"GROQ_KEYS: begins like a JSON array, but is no array of strings",
		`OLLAMA_BASE_URL: must be an address with a host that begins with http:// or https:// (got "box")`,
		"GROQ_TIMEOUT: must be from 1 to 2147483647 (got 0)",
		"DATABASE_URL: must be sqlite:<path> or postgres://<user>:<password>@<host>/<database>",
		"SESSION_RETENTION_DAYS: must be from 1 to 365 (got 0)",
	}, lines(invalid.Findings))
	require.NotContains(t, err.Error(), "secret-word")
}

func TestProcess(t *testing.T) {
	t.Setenv("CONFIG_TEST_NAME", "value")
	env, err := config.Process()
	require.NoError(t, err)
	wd, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, wd, env.Dir)
	v, ok := env.Lookup("CONFIG_TEST_NAME")
	require.True(t, ok)
	require.Equal(t, "value", v)
}

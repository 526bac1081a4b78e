package config_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"hydrallm/shared/config"
)

const secretive = `
server: {admin_key: hidden-admin, client_keys: [hidden-client]}
providers:
  - {id: p, url: "http://h/v1?key=hidden-query", key: hidden-single, headers: {X-Api-Key: hidden-header}}
  - {id: q, url: "http://h/v1", keys: [hidden-pool, {value: hidden-premium, tier: premium}]}
web: {mcp: {token: hidden-token}, mcp_server: {token: hidden-server}}
sessions: {database: "postgres://u:hidden-password@h/db"}
`

// no way to print a configuration shows a secret.
func TestSecretsDoNotShow(t *testing.T) {
	t.Parallel()
	c := sound(t, strings.Replace(secretive, "?key=hidden-query", "", 1)) // an address is no Secret
	key := c.Server.AdminKey
	texts := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%10v"} {
		texts[verb] = fmt.Sprintf(strings.Repeat(verb+" ", 5), *c, c, key, &key, c.Server.ClientKeys)
	}
	texts["print"] = fmt.Sprint(*c, c, key) + fmt.Sprintln(c.Providers, c.Server)
	for name, encode := range map[string]func(any) ([]byte, error){"json": json.Marshal, "yaml": yaml.Marshal} {
		text, err := encode(c)
		require.NoError(t, err)
		texts[name] = string(text)
	}
	text, err := xml.Marshal(c.Server) //nolint:gosec // that it shows nothing is what is tested
	require.NoError(t, err)
	texts["xml"] = string(text)
	var log strings.Builder
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("config", slog.Any("config", c), slog.Any("server", c.Server), slog.Any("key", key), slog.Any("keys", c.Providers[1].Keys))
	}
	texts["slog"] = log.String()
	for name, text := range texts {
		require.NotContains(t, text, "hidden", name)
		require.NotContains(t, text, fmt.Sprintf("%x", "hidden"), name)
	}
	require.Contains(t, texts["json"], `"[redacted]"`)
	require.Equal(t, "hidden-admin", key.Reveal())
}

// what has to be scrubbed from text of others.
func TestSecrets(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, []string{
		"hidden-admin", "hidden-client", "hidden-single", "hidden-header", "hidden-query", "hidden-pool", "hidden-premium", "hidden-token", "hidden-server", "hidden-password",
	}, sound(t, secretive).Secrets())
	require.Empty(t, sound(t, "").Secrets())
}

// a secret that begins another leaves nothing of it, whichever comes first; what is short stays.
func TestRedactor(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]string{{"team-key", "team-key-of-two", "short"}, {"team-key-of-two", "short", "team-key"}, {"team-key", "team-key", "team-key-of-two"}} {
		require.Equal(t, "[redacted] and [redacted] in short", config.Redactor(secrets).Replace("team-key-of-two and team-key in short"), secrets)
	}
	require.Equal(t, "anything", config.Redactor(nil).Replace("anything"))
}

//
func TestMask(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"": "...", "short12": "...", "eight-ch": "eigh...", "fifteen-letters": "fift...", "sixteen-letters-": "sixteen-...",
		"gsk_0123456789abcdef0123": "gsk_0123...", "비밀번호비밀번호": "비밀번호...",
	} {
		require.Equal(t, want, config.Mask(key), key)
	}
}

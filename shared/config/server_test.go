package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A request can't be taken in no time: 0 would be the default in disguise.
func TestQueueTimeoutIsAboveZero(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"0s", "-1s"} {
		_, _, err := parse(nil, "server: {queue_timeout: "+value+"}")
		require.ErrorContains(t, err, "server.queue_timeout")
	}
}

// origins are compared with what browsers send, so they are brought into that form.
func TestOrigins(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"https://App.example": "https://app.example", "https://app.example/": "https://app.example", "https://app.example:443": "https://app.example",
		"http://app.example:80": "http://app.example", "http://app.example:443": "http://app.example:443", "HTTP://localhost:*": "http://localhost:*",
		"http://[::1]:*": "http://[::1]:*", "http://[::1]": "http://[::1]", "app://": "app://*", "app://*": "app://*", "app://obsidian.md": "app://obsidian.md",
		"chrome-extension://abcdef": "chrome-extension://abcdef", "tauri://localhost": "tauri://localhost", "vscode-webview://*": "vscode-webview://*",
		"file://": "file://*", "'null'": "null", "null": "null", "capacitor://localhost:*": "capacitor://localhost:*",
	}
	for text, want := range good {
		c, _, err := parse(nil, "server: {cors_origins: ["+quoteBrackets(text)+"], client_keys: [k]}")
		require.NoError(t, err, text)
		require.Equal(t, []string{want}, c.Server.CORSOrigins, text)
	}
	for _, text := range []string{
		"example", "https://", "https://*", "http://*:80", "https://*.example", "https://a.example/x", "https://a.example?x", "https://a.example#x",
		"https://u@a.example", "https://a.example:0", "https://a.example:99999", "https://a.example:", "https://a.example:80:*", "1a://x", "a b://x",
		"://x", "https://a b", "https://a.example:*/x", "http://[::1", "app://*.x", "http://local%20host",
	} {
		_, _, err := parse(nil, `server: {cors_origins: ["`+text+`"], client_keys: [k]}`)
		require.ErrorContains(t, err, "must be an origin", text)
	}
	c, warnings, err := parse(nil, `server: {host: 127.0.0.1, cors_origins: "*", client_keys: [k]}`)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, []string{"*"}, c.Server.CORSOrigins)
	_, warnings, err = parse(nil, `server: {host: 127.0.0.1, cors_origins: "null"}`)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0].Message, "sandboxed")
}

// quoteBrackets puts quotes around text that is no plain scalar of YAML in a list.
func quoteBrackets(text string) string {
	if strings.ContainsAny(text, "[*") {
		return `"` + text + `"`
	}
	return text
}

// a proxy is an address or a network; nothing else is taken for one.
func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	c, warnings, err := parse(nil, `server: {host: 127.0.0.1, trusted_proxies: [10.1.2.3/8, 192.0.2.1, "2001:db8::/32", "::1"]}`)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, []string{"10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32", "::1/128"}, c.Server.Proxies)
	require.Len(t, c.Server.TrustedProxies(), 4)
	for _, text := range []string{"nginx", "10.0.0.0/33", "10.0.0", "*", "10.0.0.1:80", "fe80::1%eth0"} {
		_, _, err := parse(nil, `server: {trusted_proxies: ["`+text+`"]}`)
		require.ErrorContains(t, err, "server.trusted_proxies", text)
	}
}

// without any key a gateway that asks for them is closed, and nobody is warned that it is open.
func TestClosedWithoutKeys(t *testing.T) {
	t.Parallel()
	_, warnings, err := parse(nil, `server: {client_access: keys, cors_origins: "*"}`)
	require.NoError(t, err)
	for _, w := range warnings {
		require.NotContains(t, w.Path, "client_keys")
	}
}

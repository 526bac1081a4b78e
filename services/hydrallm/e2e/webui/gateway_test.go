package webui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/gatewaytest"
	"hydrallm/shared/config"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

const adminKey = "0123456789abcdef-of-the-admin"

// site is a gateway, which may be stopped and started again at the same address, with what it has stored.
type site struct {
	url      string
	settings process.Settings
	stop     func() error
}

// model is the part of a configuration with one model, "demo", of one upstream, and no other.
func model(upstream *fakellm.Server) string {
	return fmt.Sprintf(`
providers: [{id: pa, url: "%s/v1", key: key-of-provider-a}]
upstreams: [{id: a, provider: pa, model: real-a}]
models: [{name: demo, upstreams: [a], pipeline: true}]
routing: {final_fallback: "", aliases: {}}
web: {browser: never, search: [], intent: {embedding_url: "http://127.0.0.1:1"}}
`, upstream.URL())
}

// serve runs a gateway until the end of the test. Its configuration is given but for the server.
func serve(t *testing.T, text string) *site {
	t.Helper()
	return serveWith(t, text, "admin_key: "+adminKey)
}

// serveWith is serve with members of the section "server".
func serveWith(t *testing.T, text, server string) *site {
	t.Helper()
	return serveOn(t, text, server, "")
}

// serveOn is serveWith with the address of a database; "" = a file of its own.
func serveOn(t *testing.T, text, server, database string) *site {
	t.Helper()
	dir := t.TempDir()
	if database == "" {
		database = "sqlite:" + dir + "/hydrallm.db"
	}
	text += fmt.Sprintf(`
server: {host: 127.0.0.1, port: %d, drain_timeout: 1m, %s}
sessions: {database: %q}
nats: {store_dir: "%s/nats"}
`, freeport.Port(t), server, database, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600))
	s, err := process.LoadFrom(config.Environment{Dir: dir, Lookup: func(string) (string, bool) { return "", false }}, process.Overrides{})
	require.NoError(t, err)
	x := &site{url: "http://" + s.Server.Bind(), settings: s}
	x.start(t)
	return x
}

func (x *site) start(t *testing.T) {
	t.Helper()
	x.stop = gatewaytest.Run(t, x.settings, slog.New(slog.DiscardHandler))
}

// do sends a request with the admin key. The body is JSON; nil = none.
func (x *site) do(t *testing.T, method, path string, body any) (status int, answer []byte) {
	t.Helper()
	var text io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		require.NoError(t, err)
		text = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, x.url+path, text)
	require.NoError(t, err)
	req.Header.Set("X-Admin-Key", adminKey)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read
	answer, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, answer
}

// must is do for what is answered with 200, and may be asked again: a service may take too long on a busy machine.
func (x *site) must(t *testing.T, method, path string, body any) (answer []byte) {
	t.Helper()
	var status int
	await.True(t, func() bool {
		status, answer = x.do(t, method, path, body)
		return status != http.StatusServiceUnavailable
	}, "an answer from", path)
	require.Equal(t, http.StatusOK, status, "%s", answer)
	return answer
}

// chat asks the model in a session, which begins with it when it is "".
func (x *site) chat(t *testing.T, name, session, text string) (status int, answer []byte) {
	t.Helper()
	body := map[string]any{"model": name, "messages": []any{map[string]any{"role": "user", "content": text}}}
	if session != "" {
		body["session_id"] = session
	}
	return x.do(t, http.MethodPost, "/v1/chat/completions", body)
}

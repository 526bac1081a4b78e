package gateway_test

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

// withServer runs a gateway whose file has these settings of server and nats beside those of every test.
func withServer(t *testing.T, upstream, server, nats string, vars map[string]string) running {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`
server: {host: 127.0.0.1, port: %d, drain_timeout: 1m, %s}
nats: {store_dir: "%s/nats", %s}
sessions: {database: "sqlite:%s/hydrallm.db"}
providers: [{id: p, url: "%s/v1", key: k}]
upstreams: [{id: u, provider: p, model: real}]
models: [{name: m, upstreams: [u]}]
routing: {final_fallback: "", aliases: {}}
`, freeport.Port(t), server, dir, nats, dir, upstream)
	path := filepath.Join(dir, "gateway.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	named := map[string]string{"CONFIG_PATH": path}
	maps.Copy(named, vars)
	s, err := process.LoadFrom(config.Environment{Dir: dir, Lookup: configtest.Variables(named)}, process.Overrides{})
	require.NoError(t, err)
	return serve(t, s)
}

// answered is the status and the headers of an answer.
func (x running) answered(t *testing.T, method, path, body string, header map[string]string) (status int, answer http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, x.url+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, resp.Header
}

// the settings of server have their effect in the whole program.
func TestSettingsOfTheServer(t *testing.T) {
	t.Parallel()
	const chat, path = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, "/v1/chat/completions"
	upstream := fakellm.Start(t)
	upstream.Handle(fakellm.Talk("hello"))
	x := withServer(t, upstream.URL(), `client_keys: [ck-1, ck-2], max_body_bytes: 200, cors_origins: ["https://app.example"], admin_key: the-admin`, "", nil)
	key := map[string]string{"Authorization": "Bearer ck-2"}
	status := func(method, path, body string, header map[string]string) int {
		status, _ := x.answered(t, method, path, body, header)
		return status
	}
	require.Equal(t, http.StatusUnauthorized, status(http.MethodPost, path, chat, nil))
	require.Equal(t, http.StatusOK, status(http.MethodPost, path, chat, key))
	require.Equal(t, http.StatusRequestEntityTooLarge, status(http.MethodPost, path, strings.Replace(chat, "hi", strings.Repeat("a", 200), 1), key))
	for origin, allowed := range map[string]string{"https://app.example": "https://app.example", "https://other.example": ""} {
		key["Origin"] = origin
		_, header := x.answered(t, http.MethodGet, "/v1/models", "", key)
		require.Equal(t, allowed, header.Get("Access-Control-Allow-Origin"))
	}
	require.Equal(t, http.StatusUnauthorized, status(http.MethodGet, "/v1/admin/status", "", nil))
	require.Equal(t, http.StatusOK, status(http.MethodGet, "/v1/admin/status", "", map[string]string{"X-Admin-Key": "the-admin"}))
}

// the environment may give the admin key, or open the routes.
func TestAdminOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		vars map[string]string
		sent string
		want int
	}{
		"nothing":                {nil, "", http.StatusServiceUnavailable},
		"ADMIN_API_KEY":          {map[string]string{"ADMIN_API_KEY": "of-the-environment"}, "of-the-environment", http.StatusOK},
		"ADMIN_API_KEY, another": {map[string]string{"ADMIN_API_KEY": "of-the-environment"}, "other", http.StatusUnauthorized},
		"DEBUG":                  {map[string]string{"DEBUG": "true"}, "", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := withServer(t, "http://127.0.0.1:1", "", "", tc.vars)
			status, _ := x.answered(t, http.MethodGet, "/v1/admin/status", "", map[string]string{"X-Admin-Key": tc.sent})
			require.Equal(t, tc.want, status)
		})
	}
}

// nats.listen: the embedded server takes connections from elsewhere, where it is told to.
func TestSettingOfTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	addr := fmt.Sprintf("127.0.0.1:%d", freeport.Port(t))
	dialer := net.Dialer{}
	_, err := dialer.DialContext(t.Context(), "tcp", addr)
	require.Error(t, err)
	withServer(t, "http://127.0.0.1:1", "", fmt.Sprintf("listen: %q", addr), nil)
	conn, err := dialer.DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	hello := make([]byte, 5)
	_, err = conn.Read(hello)
	require.NoError(t, err)
	require.Equal(t, "INFO ", string(hello))
	require.NoError(t, conn.Close())
}

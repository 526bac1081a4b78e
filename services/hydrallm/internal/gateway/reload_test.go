package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

// a file that is read again counts for new requests, while those under way go on; what needs a restart is named, and a faulty file
// changes nothing and shows nothing of itself.
func TestReload(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		return fakellm.Chat(gjson.GetBytes(r.Body, "model").Str + " with " + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	})
	dir := t.TempDir()
	path := filepath.Join(dir, "gateway.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	text := fmt.Sprintf(`
server: {host: 127.0.0.1, port: %d, admin_key: %s}
nats: {store_dir: "%s/nats"}
sessions: {database: "sqlite:%s/hydrallm.db"}
providers: [{id: p, url: "%s/v1", keys: [first-key-1234]}, {id: single, url: "%[5]s/v1", key: single-key-1}]
upstreams: [{id: u, provider: p, model: real}, {id: s, provider: single, model: other}]
models: [{name: m, upstreams: [u]}, {name: o, upstreams: [s]}]
routing: {final_fallback: "", aliases: {}}
web: {enabled: false}
`, freeport.Port(t), adminKey, dir, dir, upstream.URL())
	write(text)
	s, err := process.LoadFrom(config.Environment{Dir: dir, Lookup: configtest.Variables(map[string]string{"CONFIG_PATH": path})}, process.Overrides{})
	require.NoError(t, err)
	x := serve(t, s)
	ask := func(model string) (int, string) {
		status, answer := x.do(t, http.MethodPost, "/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"q"}]}`)
		return status, gjson.Get(answer, "choices.0.message.content").Str
	}
	reload := func() string {
		var answer string
		await.True(t, func() bool { // the last services show themselves a moment after the port is open
			var status int
			status, answer = x.do(t, http.MethodPost, "/v1/admin/reload", "", "X-Admin-Key", adminKey)
			return status == http.StatusOK && gjson.Get(answer, "instances.#").Int() == 5 && !strings.Contains(answer, `"error"`)
		})
		return answer
	}
	_, said := ask("m")
	require.Equal(t, "real with first-key-1234", said)
	answer := reload()
	require.Equal(t, "success", gjson.Get(answer, "status").Str, answer)
	require.JSONEq(t, `[[],[],[],[],[]]`, gjson.Get(answer, "instances.#.applied").Raw)

	upstream.Queue(fakellm.Stream("x", "y").First(1, fakellm.Hang))
	calls := len(upstream.Requests())
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url+"/v1/chat/completions",
		strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"q"}]}`))
	require.NoError(t, err)
	over := make(chan error, 1)
	go func() {
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		resp, err := (&http.Client{Transport: tr}).Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			err = errors.Join(err, resp.Body.Close())
		}
		over <- err
	}()
	upstream.AwaitCount(t, calls+1)

	changed := strings.NewReplacer("[first-key-1234]", "[second-key-5678]", "single-key-1", "single-key-2", "model: real", "model: newer", "{name: o, upstreams: [s]}",
		"{name: both, upstreams: [fresh, u]}", "{id: s, provider", "{id: fresh, provider: p, model: fresh}, {id: s, provider", "final_fallback: \"\", aliases: {}",
		"final_fallback: \"\", aliases: {old: m}", "web: {enabled: false}", "web: {enabled: false, max_chars: 5}").Replace(text)
	write(changed)
	answer = reload()
	for _, i := range gjson.Get(answer, "instances").Array() {
		require.ElementsMatch(t, []any{
			"routing.aliases", "providers.p.keys", "providers.single.keys", "upstreams.u", "upstreams.fresh", "models.both", "models.o",
		}, i.Get("applied").Value(), answer)
		require.JSONEq(t, `["web.max_chars"]`, i.Get("needs_restart").Raw)
	}
	for model, want := range map[string]string{"m": "newer with second-key-5678", "both": "fresh with second-key-5678", "old": "newer with second-key-5678"} {
		status, said := ask(model)
		require.Equal(t, http.StatusOK, status, model)
		require.Equal(t, want, said)
	}
	status, _ := ask("o")
	require.NotEqual(t, http.StatusOK, status, "it is gone")
	_, list := x.do(t, http.MethodGet, "/v1/models", "")
	require.Contains(t, list, `"both"`)
	require.NotContains(t, list, `"o"`)
	_, state := x.do(t, http.MethodGet, "/v1/admin/status", "", "X-Admin-Key", adminKey)
	require.JSONEq(t, `["fresh","u"]`, gjson.Get(state, "chains.both").Raw)
	require.True(t, gjson.Get(state, "circuits.fresh").Exists())
	require.Equal(t, int64(1), gjson.Get(state, "providers.p.total_keys").Int())

	write(strings.Replace(changed, "port: ", "port: secret-in-the-file, stop_pause: ", 1))
	answer = reload()
	require.Equal(t, "refused", gjson.Get(answer, "status").Str)
	require.NotContains(t, answer, "secret-in-the-file")
	require.Contains(t, gjson.Get(answer, "instances.0.refused.0").Str, "gateway.yaml:2: server.port")
	_, said = ask("m")
	require.Equal(t, "newer with second-key-5678", said)
	select {
	case err := <-over:
		t.Fatal("the request under way has ended", err)
	default:
	}
	leave()
	require.ErrorIs(t, <-over, context.Canceled)
}

package binaries

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/processtest"
)

// installation is a gateway with its data in a directory of its own.
type installation struct {
	binary, config, addr, dir string
	process                   *processtest.Process
}

func install(t *testing.T, upstream string) *installation {
	t.Helper()
	i := &installation{binary: processtest.AllInOne(t), addr: freeport.Addr(t), dir: t.TempDir()}
	_, port, err := net.SplitHostPort(i.addr)
	require.NoError(t, err)
	i.config = filepath.Join(i.dir, "config.yaml")
	require.NoError(t, os.WriteFile(i.config, fmt.Appendf(nil, `
server: {host: 127.0.0.1, port: %s, admin_key: %s}
providers: [{id: p, url: "%s/v1", keys: [key-of-the-pool]}]
upstreams: [{id: u, provider: p, model: real, price: {input: 1, output: 2}}]
models: [{name: m, upstreams: [u]}]
routing: {final_fallback: "", aliases: {}}
web: {enabled: false}
`, port, adminKey, upstream), 0o600))
	return i
}

func (i *installation) start(t *testing.T) {
	t.Helper()
	i.process = processtest.Run(t, i.binary, []string{"CONFIG_PATH=" + i.config})
	i.process.AwaitReady(t, i.addr)
}

func (i *installation) stop(t *testing.T) {
	t.Helper()
	i.process.End(t, syscall.SIGTERM)
	require.Equal(t, 0, i.process.ExitCode())
}

// run runs a command of the program and gives what it says.
func (i *installation) run(t *testing.T, ok bool, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), i.binary, args...)
	cmd.Env = append(os.Environ(), "CONFIG_PATH="+i.config)
	out, err := cmd.CombinedOutput()
	require.Equal(t, ok, err == nil, "%v: %s", args, out)
	return string(out)
}

// ask gives the answer to a request, as the admin or with a key.
func (i *installation) ask(ctx context.Context, key, method, path, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+i.addr+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Admin-Key", adminKey)
	if key != "" {
		req.Header.Del("X-Admin-Key")
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s: status %d: %s", path, resp.StatusCode, text)
	}
	return string(text), err
}

func (i *installation) get(t *testing.T, key, method, path, body string) string {
	t.Helper()
	text, err := i.ask(t.Context(), key, method, path, body)
	require.NoError(t, err)
	return text
}

const turn = `{"model":"m","session_id":"ses_kept","messages":[{"role":"user","content":"what is kept?"}]}`

// a backup that is made under load holds all that had happened when it began. Put back into an empty place, the gateway has it again:
// sessions, the ledger, stored responses, added keys, keys of clients with what they have used, settings.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Handle(fakellm.Talk("hello"))
	a := install(t, upstream.URL())
	a.start(t)
	made := a.get(t, "", http.MethodPost, "/v1/admin/client-keys", `{"name":"laptop","budget":{"amount":1000000,"unit":"tokens","period":"month"}}`)
	key, id := gjson.Get(made, "key").Str, gjson.Get(made, "id").Str
	a.get(t, "", http.MethodPost, "/v1/admin/keys", `{"provider":"p","keys":["added-later-1","added-later-2"]}`)
	a.get(t, "", http.MethodPut, "/v1/admin/settings", `{"locale":"ko"}`)
	a.get(t, key, http.MethodPost, "/v1/chat/completions", turn)
	a.get(t, key, http.MethodPost, "/v1/chat/completions", turn)
	response := gjson.Get(a.get(t, key, http.MethodPost, "/v1/responses", `{"model":"m","input":"keep this"}`), "id").Str
	require.NotEmpty(t, response)

	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	var load sync.WaitGroup
	for range 3 {
		load.Go(func() {
			for ctx.Err() == nil {
				if _, err := a.ask(context.WithoutCancel(ctx), key, http.MethodPost, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		a.get(t, key, http.MethodPost, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"before"}]}`)
	}
	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	said := a.run(t, true, "backup", file)
	enough()
	load.Wait()
	require.Contains(t, said, "schema ")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Contains(t, a.run(t, false, "backup", file), "is there already")
	require.Contains(t, a.run(t, false, "restore", "--force", file), "the gateway runs")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, secret := range []string{"added-later-1", "key-of-the-pool", adminKey, key} {
		require.NotContains(t, a.run(t, true, "backup", "-"), secret)
	}
	messages := a.get(t, "", http.MethodGet, "/v1/admin/sessions/ses_kept/messages", "")
	require.Len(t, gjson.Parse(messages).Array(), 4, messages)
	a.stop(t)

	b := install(t, upstream.URL())
	require.Contains(t, b.run(t, false, "backup", filepath.Join(b.dir, "none")), "no database")
	require.Contains(t, b.run(t, true, "restore", file), "restored the backup")
	check := func(i *installation) {
		t.Helper()
		i.start(t)
		require.Equal(t, messages, i.get(t, "", http.MethodGet, "/v1/admin/sessions/ses_kept/messages", ""))
		require.Equal(t, response, gjson.Get(i.get(t, key, http.MethodGet, "/v1/responses/"+response, ""), "id").Str)
		require.Contains(t, i.get(t, "", http.MethodGet, "/v1/admin/settings", ""), `"ko"`)
		require.Equal(t, int64(3), gjson.Get(i.get(t, "", http.MethodGet, "/v1/admin/status", ""), "key_statistics.p.total").Int(), "the added keys open with the admin key")
		require.GreaterOrEqual(t, gjson.Get(i.get(t, "", http.MethodGet, "/v1/admin/stats", ""), "total_requests").Int(), int64(23))
		clients := gjson.Get(i.get(t, "", http.MethodGet, "/v1/admin/client-keys", ""), "@this").Raw
		require.Contains(t, clients, id)
		require.Contains(t, clients, `"laptop"`)
		require.Contains(t, i.get(t, key, http.MethodPost, "/v1/chat/completions", turn), "hello", "the client's key is known")
		_, err := i.ask(t.Context(), "not-"+key, http.MethodGet, "/v1/models", "")
		require.ErrorContains(t, err, "401")
	}
	check(b)
	b.stop(t)

	// One that does not run is backed up from its data.
	stopped := filepath.Join(t.TempDir(), "stopped.tar.gz")
	b.run(t, true, "backup", stopped)
	require.Contains(t, b.run(t, false, "restore", stopped), "--force")
	require.Contains(t, b.run(t, true, "restore", "--force", stopped), ".before-")
	b.start(t)
	require.Len(t, gjson.Parse(b.get(t, "", http.MethodGet, "/v1/admin/sessions/ses_kept/messages", "")).Array(), 6)
	b.stop(t)
	old, err := filepath.Glob(filepath.Join(b.dir, "data", "*.before-*"))
	require.NoError(t, err)
	require.Len(t, old, 2, "nothing of what was there is lost")

	// what is damaged is refused before anything is touched.
	c := install(t, upstream.URL())
	damaged := filepath.Join(c.dir, "damaged")
	middle := slices.Clone(data)
	middle[len(middle)/2] ^= 0x10
	for name, text := range map[string][]byte{
		"cut off": data[:len(data)*2/3], "one byte less": data[:len(data)-1], "empty": {}, "of another kind": []byte("hello"), "one bit": middle,
		"something behind it": append(slices.Clone(data), "more"...),
	} {
		require.NoError(t, os.WriteFile(damaged, text, 0o600))
		said := c.run(t, false, "restore", damaged)
		require.True(t, strings.Contains(said, "is damaged") || strings.Contains(said, "is cut off"), "%s: %s", name, said)
	}
	_, err = os.Stat(filepath.Join(c.dir, "data", "hydrallm.db"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

package binaries

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/machine"
	"hydrallm/shared/testkit/processtest"
)

// startNginx runs nginx with the example of the documentation in front of a gateway, and gives its address.
func startNginx(t *testing.T, gateway string) string {
	t.Helper()
	dir, addr := t.TempDir(), freeport.Addr(t)
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`
daemon off;
master_process off; # one process, which ends when it is told to
pid nginx.pid;
error_log stderr;
events {}
http {
access_log off;
client_body_temp_path body;
proxy_temp_path proxy;
fastcgi_temp_path fastcgi;
uwsgi_temp_path uwsgi;
scgi_temp_path scgi;
%s
}
`, example(t, "nginx.example.conf", "127.0.0.1:8000", gateway, "listen 8080", "listen "+addr))
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	awaitProxy(t, exec.Command(machine.Program(t, "nginx"), "-p", dir, "-e", "stderr", "-c", conf), addr)
	return addr
}

// startCaddy does the same with Caddy.
func startCaddy(t *testing.T, gateway string) string {
	t.Helper()
	dir, addr := t.TempDir(), freeport.Addr(t)
	conf := filepath.Join(dir, "Caddyfile")
	text := "{\n\tadmin off\n\tgrace_period 1s\n}\n" + example(t, "caddy.example", "127.0.0.1:8000", gateway, "llm.example.com {", "http://"+addr+" {")
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	cmd := exec.Command(machine.Program(t, "caddy"), "run", "--adapter", "caddyfile", "--config", conf)
	cmd.Env = []string{"HOME=" + dir}
	awaitProxy(t, cmd, addr)
	return addr
}

// example is a file of deploy with pairs of texts replaced, each of which stands there once.
func example(t *testing.T, name string, pairs ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repositoryRoot, "deploy", name))
	require.NoError(t, err)
	text := string(data)
	for pair := range slices.Chunk(pairs, 2) {
		require.Equal(t, 1, strings.Count(text, pair[0]), pair[0])
		text = strings.Replace(text, pair[0], pair[1], 1)
	}
	return text
}

func awaitProxy(t *testing.T, cmd *exec.Cmd, addr string) {
	t.Helper()
	w := processtest.Start(t, cmd)
	await.True(t, func() bool { return reachable(t, addr) || w.Ended() })
	require.False(t, w.Ended(), "it ended at start:\n%s", w.Log.String())
}

// five people share a gateway below a path of a site, each with a key. Pieces of a stream come through while the upstream is not at
// its end, a client that leaves is noticed behind the proxy, and large bodies, names with slashes and errors are the gateway's affair.
func TestClientKeysBehindProxies(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T, gateway string) string{"nginx": startNginx, "Caddy": startCaddy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := freeport.Addr(t)
			behindProxy(t, addr, "http://"+start(t, addr)+"/llm/v1")
		})
	}
}

func behindProxy(t *testing.T, addr, front string) {
	t.Helper()
	upstream := fakellm.Start(t)
	upstream.Handle(fakellm.Talk("hello world"))
	upstream.Offer("vendor/real")
	keys := []string{"key-of-ann-1", "key-of-bob-2", "key-of-eve-3", "key-of-joe-4", "key-of-sue-5"}
	env := append(alone(t, t.TempDir(), addr, upstream.URL()), "CLIENT_API_KEYS="+strings.Join(keys, ","))
	w := processtest.Run(t, processtest.AllInOne(t), env)
	w.AwaitReady(t, addr)

	for _, key := range keys {
		got := client{front, key}.ask(t, "m")
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.Contains(t, got.body, "hello world")
	}
	for name, key := range map[string]string{"no key": "", "unknown key": "key-of-nobody", "a part of a key": "key-of-ann"} {
		got := client{front, key}.ask(t, "m")
		require.Equal(t, http.StatusUnauthorized, got.status, name)
		require.Contains(t, got.body, `"error"`, name)
	}
	require.Len(t, upstream.Requests(), len(keys))
	for _, r := range upstream.Requests() {
		require.Equal(t, "key-of-the-provider", r.Key(), "keys of clients go nowhere")
	}

	ann := client{front, keys[0]}
	ann.awaitListed(t, "p/vendor/real")
	for _, id := range []string{"p/vendor/real", "p%2Fvendor%2Freal", "m"} {
		got := ann.do(t, http.MethodGet, "/models/"+id, "")
		require.Equal(t, http.StatusOK, got.status, "%s: %s", id, got.body)
	}
	large := strings.Replace(question("m", false), `"hi"`, `"`+strings.Repeat("a long story ", 300_000)+`"`, 1)
	require.Equal(t, http.StatusOK, ann.do(t, http.MethodPost, "/chat/completions", large).status)
	require.Equal(t, http.StatusNotFound, client{base: strings.TrimSuffix(front, "/v1")}.do(t, http.MethodGet, "/metrics", "").status)
	inside := ann.do(t, http.MethodGet, "/admin/status", "")
	require.Equal(t, http.StatusNotFound, inside.status)
	require.NotContains(t, inside.body, `"error"`, "the admin routes stay inside: the proxy answers")
	lost := ann.do(t, http.MethodGet, "/nowhere", "")
	require.Equal(t, http.StatusNotFound, lost.status)
	require.Contains(t, lost.body, "/v1/chat/completions", "the gateway's own words")

	upstream.Queue(fakellm.Stream("first", "second").First(2, fakellm.Hang))
	resp := ann.send(t, http.MethodPost, "/chat/completions", question("m", true))
	require.Equal(t, http.StatusOK, resp.StatusCode)
	lines := bufio.NewScanner(resp.Body)
	for seen := false; !seen; {
		require.True(t, lines.Scan(), "the stream ends without the piece that the upstream has sent")
		seen = strings.Contains(lines.Text(), "first")
	}
	require.NoError(t, resp.Body.Close())
	calls := upstream.Await(t, func(all []fakellm.Request) bool { return !all[len(all)-1].Left.IsZero() })
	require.Len(t, calls, len(keys)+2)
}

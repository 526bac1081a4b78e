package gateway_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/hydrallm/internal/backup"
	sessionwriter "hydrallm/services/session-writer"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/pgtest"
)

// placed reads a configuration with a pool of keys and the model m, and its data in a directory.
func placed(t *testing.T, dir, admin, upstream string) process.Settings {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := strings.NewReplacer("DIR", dir, "ADMIN", admin, "UPSTREAM", upstream).Replace(`
server: {host: 127.0.0.1, port: 1, admin_key: ADMIN, queue_timeout: 10m}
providers: [{id: p, url: "UPSTREAM/v1", keys: [key-of-the-pool]}]
upstreams: [{id: u, provider: p, model: real, price: {input: 1, output: 2}}]
models: [{name: m, upstreams: [u]}]
routing: {final_fallback: "", aliases: {}}
web: {enabled: false}
sessions: {database: "sqlite:DIR/hydrallm.db"}
nats: {store_dir: "DIR/nats"}
`)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	s, err := process.LoadFrom(config.Environment{Dir: dir, Lookup: configtest.Variables(map[string]string{"CONFIG_PATH": path})}, process.Overrides{})
	require.NoError(t, err)
	s.Server.Port = freeport.Port(t)
	return s
}

// unpack puts a directory of testdata into another one.
func unpack(t *testing.T, name, dir string) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // only read
	zip, err := gzip.NewReader(file)
	require.NoError(t, err)
	for files := tar.NewReader(zip); ; {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.FromSlash(head.Name))
		if head.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		data, err := io.ReadAll(files)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
}

// operate asks an admin route, again while the service behind it has too much to do to answer in time.
func operate(t *testing.T, x running, key, method, path, body string) (answer string) {
	t.Helper()
	await.True(t, func() bool {
		var status int
		status, answer = x.do(t, method, "/v1/admin"+path, body, "X-Admin-Key", key)
		if status != http.StatusServiceUnavailable {
			require.Equal(t, http.StatusOK, status, answer)
		}
		return status == http.StatusOK
	}, method, path)
	return answer
}

// kept is what a gateway has to know of its earlier days.
type kept struct {
	admin, client string // keys
	session       string
	messages      string   // of the session at first, as an admin sees them
	said          []string // by the user there, in turn
	response      string
	used          int64 // by the client, at least
}

// check asks a gateway for all of it, and goes on from there.
func (k *kept) check(t *testing.T, x running, upstream *fakellm.Server) {
	t.Helper()
	admin := func(method, path, body string) string { return operate(t, x, k.admin, method, path, body) }
	ask := func(method, path, body string) string {
		t.Helper()
		status, answer := x.do(t, method, "/v1"+path, body, "Authorization", "Bearer "+k.client)
		require.Equal(t, http.StatusOK, status, answer)
		return answer
	}
	messages := gjson.Parse(admin(http.MethodGet, "/sessions/"+k.session+"/messages", "")).Array()
	for i, m := range gjson.Parse(k.messages).Array() {
		require.Less(t, i, len(messages))
		require.JSONEq(t, m.Raw, messages[i].Raw)
	}
	require.Contains(t, admin(http.MethodGet, "/settings", ""), `"ko"`)
	require.Contains(t, admin(http.MethodGet, "/intent/keywords", ""), "zeitgeist")
	require.Equal(t, "laptop", gjson.Get(admin(http.MethodGet, "/client-keys", ""), "0.name").Str)
	await.True(t, func() bool {
		return gjson.Get(admin(http.MethodGet, "/client-keys", ""), "0.budget.used").Int() >= k.used
	})
	await.True(t, func() bool {
		status, answer := x.do(t, http.MethodGet, "/v1/responses/"+k.response, "", "Authorization", "Bearer "+k.client)
		return status == http.StatusOK && gjson.Get(answer, "id").Str == k.response
	}, "the stored response")

	require.Contains(t, ask(http.MethodPost, "/chat/completions", `{"model":"m","session_id":"`+k.session+`","messages":[{"role":"user","content":"and now?"}]}`), "hello")
	var said []string
	requests := upstream.Requests()
	for _, m := range gjson.GetBytes(requests[len(requests)-1].Body, "messages").Array() {
		if m.Get("role").Str == "user" {
			said = append(said, m.Get("content").Str)
		}
	}
	k.said = append(k.said, "and now?")
	require.Equal(t, k.said, said, "the session goes on")
	next := ask(http.MethodPost, "/responses", `{"model":"m","input":"go on","previous_response_id":"`+k.response+`"}`)
	require.Equal(t, k.response, gjson.Get(next, "previous_response_id").Str)
	await.True(t, func() bool { // both keys of the pool are asked in turn: the added one opens
		ask(http.MethodPost, "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
		requests := upstream.Requests()
		return requests[len(requests)-1].Key() == addedKey
	})
	status, answer := x.do(t, http.MethodGet, "/v1/models", "", "Authorization", "Bearer not-"+k.client)
	require.Equal(t, http.StatusUnauthorized, status, answer)
}

// What the data in testdata/before.tar.gz have. The program before the ninth schema has written them, with an embedded NATS server and SQLite; afterwards
// times of expiry were put off for a century.
const (
	olderAdmin    = "admin-key-of-the-version-before"
	olderClient   = "hk-zxemm0qPHjlUfBwcG9yBhIBDC66JhLaoM5bDrl5Phac"
	olderResponse = "resp_06h34giaba3gitmls0k64rb4mc"
	addedKey      = "added-by-the-version-before"
)

// this program goes on with the data directory of an older one, streams and buckets included: sessions, stored responses, keys of clients with
// their budgets, added keys, keywords, settings. Before its first start a backup of it is refused, since that would change its schema.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Handle(fakellm.Talk("hello"))
	dir := t.TempDir()
	unpack(t, "before.tar.gz", dir)
	s := placed(t, filepath.Join(dir, "data"), olderAdmin, upstream.URL())
	log := slog.New(slog.DiscardHandler)
	require.ErrorIs(t, backup.Make(t.Context(), s, log, io.Discard), backup.ErrOlder)
	x := serve(t, s)
	k := kept{
		admin: olderAdmin, client: olderClient, session: "ses_older", response: olderResponse, used: 45, said: []string{"older question one", "older question two"},
	}
	k.messages = operate(t, x, olderAdmin, http.MethodGet, "/sessions/ses_older/messages", "")
	require.Equal(t, `["older question one","an older answer","older question two","an older answer"]`, gjson.Get(k.messages, "#.message.content").Raw)
	k.check(t, x, upstream)
	require.NoError(t, x.stop())
	var file bytes.Buffer
	require.NoError(t, backup.Make(t.Context(), s, log, &file))
	_, err := sessionwriter.CheckBackup(&file)
	require.NoError(t, err)
}

// a backup of one process with SQLite becomes a cluster with NATS servers and PostgreSQL of its own, and one of that becomes one process again.
func TestMovesIntoAClusterAndBack(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Handle(fakellm.Talk("hello"))
	log := slog.New(slog.DiscardHandler)
	x := serve(t, placed(t, t.TempDir(), adminKey, upstream.URL()))
	admin := func(method, path, body string) string { return operate(t, x, adminKey, method, path, body) }
	k := &kept{admin: adminKey, session: "ses_moved", said: []string{"one", "two"}, used: 1}
	k.client = gjson.Get(admin(http.MethodPost, "/client-keys", `{"name":"laptop","budget":{"amount":1000000,"unit":"tokens","period":"month"}}`), "key").Str
	admin(http.MethodPost, "/keys", `{"provider":"p","keys":["`+addedKey+`"]}`)
	admin(http.MethodPut, "/settings", `{"locale":"ko"}`)
	admin(http.MethodPost, "/intent/keywords", `{"lang":"en","keywords":["zeitgeist"]}`)
	for _, text := range k.said {
		status, answer := x.do(t, http.MethodPost, "/v1/chat/completions", `{"model":"m","session_id":"ses_moved","messages":[{"role":"user","content":"`+text+`"}]}`,
			"Authorization", "Bearer "+k.client)
		require.Equal(t, http.StatusOK, status, answer)
	}
	_, made := x.do(t, http.MethodPost, "/v1/responses", `{"model":"m","input":"keep this"}`, "Authorization", "Bearer "+k.client)
	k.response = gjson.Get(made, "id").Str
	fetch := func() []byte { return []byte(admin(http.MethodGet, "/backup", "")) }
	file := fetch()
	k.messages = admin(http.MethodGet, "/sessions/ses_moved/messages", "")
	require.Equal(t, int64(4), gjson.Get(k.messages, "#").Int())
	require.NoError(t, x.stop())

	cluster := placed(t, t.TempDir(), adminKey, upstream.URL())
	cluster.NATS.URL, cluster.Sessions.Database = natstest.StartListening(t).ClientURL(), config.Secret(pgtest.New(t))
	restore := func(s process.Settings, file []byte, force bool) error {
		_, err := backup.Restore(t.Context(), s, bytes.NewReader(file), force, log)
		return err
	}
	require.NoError(t, restore(cluster, file, false))
	x = serve(t, cluster)
	k.check(t, x, upstream)
	require.ErrorIs(t, restore(cluster, file, true), backup.ErrRunning)
	later := fetch()
	require.NoError(t, x.stop())
	require.ErrorIs(t, restore(cluster, file, false), sessionwriter.ErrNotEmpty)

	alone := placed(t, t.TempDir(), adminKey, upstream.URL())
	require.NoError(t, restore(alone, later, false))
	x = serve(t, alone)
	k.check(t, x, upstream)
	require.NoError(t, x.stop())

	require.NoError(t, restore(cluster, later, true), "in the place of what is there")
	x = serve(t, cluster)
	k.said = k.said[:len(k.said)-1] // as it was before one process went on
	k.check(t, x, upstream)
}

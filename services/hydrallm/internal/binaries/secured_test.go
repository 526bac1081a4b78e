package binaries

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/hydrallm/internal/natsrights"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/machine"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/processtest"
)

// secured is a fleet whose NATS server knows each service by its nkey, speaks TLS only, and lets it do what deploy/nats/permissions.conf says.
type secured struct {
	*fleet

	server *natstest.Configured
	dir    string // of the identities
}

// identities makes what a secured cluster needs, as an operator does, and gives its directory.
func identities(t *testing.T) string {
	t.Helper()
	machine.Program(t, "openssl")
	dir := filepath.Join(t.TempDir(), "identities")
	out, err := exec.CommandContext(t.Context(), repository+"deploy/nats/identities.sh", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

func newSecured(t *testing.T, web string) *secured {
	t.Helper()
	s := &secured{dir: identities(t)}
	rights, err := os.ReadFile(repository + "deploy/nats/permissions.conf")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "permissions.conf"), rights, 0o600))
	conf := filepath.Join(s.dir, "nats.conf")
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, `
listen: "127.0.0.1:-1"
max_payload: 8MB
jetstream { store_dir: %q, max_memory_store: 4GB, max_file_store: 16GB }
tls { cert_file: "%[2]s/nats.pem", key_file: "%[2]s/nats.key" }
include permissions.conf
`, t.TempDir(), s.dir), 0o600))
	s.server = natstest.StartConfigured(t, conf)
	f := &fleet{ingress: freeport.Addr(t), upstream: fakellm.Start(t)}
	s.fleet = f
	f.bin = processtest.Services(t, natsrights.Services()...)
	f.config = filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(f.config, fmt.Appendf(nil, `
server: {host: 127.0.0.1, port: %s, drain_timeout: 5s, admin_key: %s, client_access: open}
providers:
  - {id: groq, url: "%[3]s/v1", keys: [key-of-the-provider], default_models: {free: small}}
upstreams: [{id: u, provider: groq, model: real, max_concurrency: 3}]
models: [{name: m, upstreams: [u]}]
routing: {priority: [groq], fast: [groq], final_fallback: "", aliases: {}}
web: {browser: never, search: [searxng], searxng_url: %[4]q, allow_hosts: [127.0.0.1], intent: {embedding_url: %[4]q}}
sessions: {database: "sqlite:%[5]s/hydrallm.db", compressor: llm, compressor_model: m, compact_threshold: 50, recent_window: 2}
nats: {url: "tls://%[6]s", nkey_seed_file: "${SEED}", ca: "%[7]s/ca.pem"}
`, portOf(t, f.ingress), adminKey, f.upstream.URL(), web, t.TempDir(), s.server.Addr(), s.dir), 0o600))
	return s
}

// start runs a service with its own identity and waits until it is ready.
func (s *secured) start(t *testing.T, service string) *processtest.Process {
	t.Helper()
	health := freeport.Addr(t)
	w := processtest.Run(t, filepath.Join(s.bin, service), []string{"CONFIG_PATH=" + s.config, "HEALTH_ADDR=" + health, "SEED=" + filepath.Join(s.dir, service+".nk")})
	w.AwaitReady(t, health)
	require.Empty(t, s.server.Violations())
	return w
}

// five services with the rights of the file, and no more, answer on every surface and every route, take over what others leave, and the server has nothing to
// refuse. A service that begins to use a subject which the file does not give it fails here.
func TestEveryServiceWithItsOwnRights(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" {
			_, _ = w.Write([]byte("<html><body><article><p>" + strings.Repeat("Lamps are made of glass, and of brass. ", 20) + "</p></article></body></html>"))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"query":"q","results":[]}`))
	}))
	t.Cleanup(web.Close)
	s := newSecured(t, web.URL)
	s.upstream.Offer("small", "large")
	release := make(chan struct{})
	var held atomic.Bool // the first call of the request that survives its dispatcher
	s.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		body := string(r.Body)
		switch {
		case strings.Contains(body, "be endless"):
			return fakellm.Stream("one ", "two").First(3, fakellm.Hang)
		case strings.Contains(body, "be patient"):
			<-release
			return fakellm.Talk("all is well")(r)
		case strings.Contains(body, "be long"):
			return fakellm.Stream(slices.Repeat([]string{strings.Repeat("long ", 4000)}, 100)...)
		case strings.Contains(body, "be silent"), strings.Contains(body, "be late") && held.CompareAndSwap(false, true):
			return fakellm.NoAnswer()
		case strings.HasSuffix(r.Path, "/embeddings"):
			return fakellm.JSON(http.StatusOK, gjson.Parse(`{"object":"list","model":"real","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":1,"total_tokens":1}}`).Value())
		case strings.HasSuffix(r.Path, "/moderations"):
			return fakellm.JSON(http.StatusOK, map[string]any{"id": "x", "results": []any{}})
		default:
			return fakellm.Talk("all is well")(r)
		}
	})
	writer := s.start(t, "session-writer")
	first := s.start(t, "dispatcher")
	others := []*processtest.Process{s.start(t, "enricher"), s.start(t, "analyzer"), s.start(t, "ingress")}
	c := client{base: "http://" + s.ingress + "/v1"}
	c.awaitListed(t, "groq/large")

	s.everySurface(t, c, web.URL)
	s.everyAdminRoute(t, c)
	s.recordedAnswers(t, c)

	// A client that leaves, one that is behind, an outage, a worker that is killed, one that hands back, and a session writer that stops.
	s.upstream.Queue(fakellm.NoAnswer())
	require.NoError(t, c.send(t, http.MethodPost, "/chat/completions", saying("be endless")).Body.Close())
	s.awaitCall(t, "be endless", func(r fakellm.Request) bool { return !r.Left.IsZero() })
	require.Contains(t, c.do(t, http.MethodPost, "/chat/completions", saying("be long")).body, "[DONE]")

	// Every connection is lost while requests run.
	patient := c.begin(t, saying("be patient"))
	background := c.do(t, http.MethodPost, "/responses", `{"model":"m","input":"be patient, too","background":true}`)
	require.Equal(t, http.StatusOK, background.status, background.body)
	s.awaitCall(t, "be patient\"", called)
	s.awaitCall(t, "be patient, too", called)
	s.cutAll(t)
	await.True(t, func() bool { return c.ask(t, "m").status == http.StatusOK }, "an answer reaches the ingress again")
	close(release)
	require.Contains(t, await.Value(t, patient), "[DONE]")
	front{s.ingress}.until(t, gjson.Get(background.body, "id").Str, "completed")

	answer := c.begin(t, saying("be late"))
	s.awaitCall(t, "be late", called)
	second := s.start(t, "dispatcher")
	first.End(t, syscall.SIGKILL)
	require.Contains(t, await.Value(t, answer), "[DONE]")
	second.End(t, syscall.SIGTERM)
	writer.End(t, syscall.SIGTERM)
	for _, w := range others {
		w.End(t, syscall.SIGTERM)
	}
	require.Empty(t, s.server.Violations())
}

// saying is a streamed question with some words.
func saying(words string) string {
	return `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + words + `"}]}`
}

// awaitCall waits for an upstream call with some words.
func (s *secured) awaitCall(t *testing.T, words string, ok func(fakellm.Request) bool) {
	t.Helper()
	s.upstream.Await(t, func(all []fakellm.Request) bool {
		return slices.ContainsFunc(all, func(r fakellm.Request) bool { return strings.Contains(string(r.Body), words) && ok(r) })
	})
}

func called(fakellm.Request) bool { return true }

// begin asks without waiting for the answer, which comes through the channel.
func (c client) begin(t *testing.T, body string) <-chan string {
	t.Helper()
	answer := make(chan string, 1)
	go func() {
		defer close(answer)
		r, err := read(c.try(t.Context(), http.MethodPost, "/chat/completions", body)) //nolint:bodyclose,nolintlint // read does
		if err != nil {
			t.Error(err)
		}
		answer <- r.body
	}()
	return answer
}

// cutAll ends every connection to the server, and returns when all services are back.
func (s *secured) cutAll(t *testing.T) {
	t.Helper()
	there, err := s.server.Connz(&server.ConnzOptions{})
	require.NoError(t, err)
	for _, conn := range there.Conns {
		require.NoError(t, s.server.DisconnectClientByID(conn.Cid))
	}
	await.True(t, func() bool {
		now, err := s.server.Connz(&server.ConnzOptions{})
		require.NoError(t, err)
		return len(now.Conns) == len(there.Conns) && !slices.ContainsFunc(now.Conns, func(c *server.ConnInfo) bool {
			return slices.ContainsFunc(there.Conns, func(old *server.ConnInfo) bool { return old.Cid == c.Cid })
		})
	}, "the connections")
}

// everySurface asks over every protocol, whole and as a stream, with a session that gets compacted, with text from the web, and with a body above the payload limit.
func (s *secured) everySurface(t *testing.T, c client, web string) {
	t.Helper()
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	large := strings.Repeat("long ", 9<<20/5)
	for _, q := range []struct{ name, path, body string }{
		{"chat", "/chat/completions", `{"model":"m",` + hi + `}`},
		{"chat, a stream", "/chat/completions", `{"model":"m","stream":true,` + hi + `}`},
		{"chat that is routed", "/chat/completions", `{"model":"auto",` + hi + `}`},
		{"the first turn", "/chat/completions", `{"model":"m","session_id":"s",` + hi + `}`},
		{"the next turn", "/chat/completions", `{"model":"m","session_id":"s","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("And then what? ", 40) + `"}]}`},
		{"a turn that is routed", "/chat/completions", `{"model":"auto","session_id":"s",` + hi + `}`},
		{"a page", "/chat/completions", `{"model":"auto","messages":[{"role":"user","content":"what is ` + web + `/page about"}]}`},
		{"a search", "/chat/completions", `{"model":"auto","has_search":true,"session_id":"w",` + hi + `}`},
		{"a large body", "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"` + large + `"}]}`},
		{"a large body with a session", "/chat/completions", `{"model":"auto","session_id":"l","messages":[{"role":"user","content":"` + large + `"}]}`},
		{"completions", "/completions", `{"model":"m","prompt":"hi"}`},
		{"messages", "/messages", `{"model":"m","max_tokens":9,` + hi + `}`},
		{"messages, a stream", "/messages", `{"model":"m","max_tokens":9,"stream":true,` + hi + `}`},
		{"tokens", "/messages/count_tokens", `{"model":"m",` + hi + `}`},
		{"responses", "/responses", `{"model":"m","input":"hi","store":true}`},
		{"responses, a stream", "/responses", `{"model":"m","input":"hi","stream":true}`},
		{"embeddings", "/embeddings", `{"model":"m","input":"hi"}`},
		{"moderations", "/moderations", `{"model":"m","input":"hi"}`},
	} {
		got := c.do(t, http.MethodPost, q.path, q.body)
		require.Equal(t, http.StatusOK, got.status, "%s: %.300s", q.name, got.body)
		require.Empty(t, s.server.Violations(), q.name)
	}
	for _, kind := range []string{"first", "repeated"} {
		got := c.do(t, http.MethodPost, "/chat/completions", `{"model":"m",`+hi+`}`, "Idempotency-Key", "k")
		require.Equal(t, http.StatusOK, got.status, "%s: %s", kind, got.body)
	}
}

// recordedAnswers goes through the life of responses in the background and of stored ones.
func (s *secured) recordedAnswers(t *testing.T, c client) {
	t.Helper()
	g := front{s.ingress}
	id := g.begin(t)
	g.until(t, id, "completed")
	require.Contains(t, g.whole(t, id), "response.completed")
	next := c.do(t, http.MethodPost, "/responses", `{"model":"m","input":"go on","previous_response_id":"`+id+`"}`)
	require.Equal(t, http.StatusOK, next.status, next.body)
	require.Equal(t, http.StatusOK, c.do(t, http.MethodGet, "/responses/"+id+"/input_items", "").status)
	require.Equal(t, http.StatusOK, c.do(t, http.MethodDelete, "/responses/"+id, "").status)
	silent := c.do(t, http.MethodPost, "/responses", `{"model":"m","input":"be silent","background":true}`)
	require.Equal(t, http.StatusOK, silent.status, silent.body)
	id = gjson.Get(silent.body, "id").Str
	s.awaitCall(t, "be silent", called)
	require.Equal(t, http.StatusOK, c.do(t, http.MethodPost, "/responses/"+id+"/cancel", "").status)
	g.until(t, id, "cancelled")
	require.Empty(t, s.server.Violations())
}

// everyAdminRoute uses what operators have.
func (s *secured) everyAdminRoute(t *testing.T, c client) {
	t.Helper()
	do := func(method, path, body string) reply {
		got := c.do(t, method, "/admin"+path, body, "X-Admin-Key", adminKey)
		require.Less(t, got.status, http.StatusMultipleChoices, "%s %s: %s", method, path, got.body)
		require.Empty(t, s.server.Violations(), "%s %s", method, path)
		return got
	}
	for _, path := range []string{
		"/stats", "/dashboard", "/status", "/logs", "/comm-logs", "/sessions", "/sessions/s/messages", "/settings", "/onboarding", "/install/status", "/intent/keywords",
		"/calls", "/requests", "/timeline", "/client-keys",
	} {
		do(http.MethodGet, path, "")
	}
	for _, r := range []struct{ method, path, body string }{
		{http.MethodPost, "/refresh-models", ""},
		{http.MethodPost, "/probe?force=true", ""},
		{http.MethodPost, "/keys", `{"provider":"groq","keys":["gsk_another_key"]}`},
		{http.MethodDelete, "/keys", `{"provider":"groq","index":1}`},
		{http.MethodPut, "/settings", `{"locale":"ko"}`},
		{http.MethodPut, "/settings", `{"locale":null}`},
		{http.MethodPost, "/intent/keywords", `{"lang":"en","keywords":["ferry tide"]}`},
		{http.MethodPost, "/intent/keywords/learn", `{"query":"ferry timetable for tomorrow"}`},
		{http.MethodPost, "/sessions/new", ""},
		{http.MethodPost, "/sessions/import", `{"session_id":"s"}`},
		{http.MethodPost, "/sessions/s/fork", "{}"},
		{http.MethodDelete, "/sessions/s", ""},
		{http.MethodPost, "/sessions/cleanup", ""},
		{http.MethodPost, "/logs/clear", ""},
		{http.MethodDelete, "/comm-logs", ""},
	} {
		do(r.method, r.path, r.body)
	}
	await.True(t, func() bool { return len(gjson.Get(do(http.MethodPost, "/reload", "").body, "instances").Array()) == 5 }, "every service reads its configuration again")

	made := do(http.MethodPost, "/client-keys", `{"name":"laptop","limits":{"rpm":60},"budget":{"amount":5,"unit":"money","period":"month"}}`)
	id := gjson.Get(made.body, "id").Str
	named := client{base: c.base, key: gjson.Get(made.body, "key").Str}
	require.Equal(t, http.StatusOK, named.ask(t, "m").status)
	do(http.MethodPatch, "/client-keys/"+id, `{"name":"desktop"}`)
	do(http.MethodPost, "/client-keys/"+id+"/rotate", "")
	do(http.MethodDelete, "/client-keys/"+id, "")
	do(http.MethodPut, "/settings", `{"locale":"en"}`)
}

// what only others may do is refused, to each service, and to whoever is nobody.
func TestForbiddenSubjectsAreRefused(t *testing.T) {
	t.Parallel()
	s := newSecured(t, "http://127.0.0.1:1")
	_, err := nats.Connect("tls://"+s.server.Addr().String(), nats.RootCAs(filepath.Join(s.dir, "ca.pem")))
	require.ErrorIs(t, err, nats.ErrAuthorization)
	for _, service := range natsrights.Services() {
		seed, err := nats.NkeyOptionFromSeed(filepath.Join(s.dir, service+".nk"))
		require.NoError(t, err)
		refused := make(chan error, 1)
		nc, err := nats.Connect("tls://"+s.server.Addr().String(), seed, nats.RootCAs(filepath.Join(s.dir, "ca.pem")),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		require.NoError(t, err)
		publish, subscribe := natsrights.Forbidden(service)
		require.NotEmpty(t, publish)
		require.NotEmpty(t, subscribe)
		for _, subj := range publish {
			require.NoError(t, nc.Publish(subj, nil))
			require.ErrorContains(t, await.Value(t, refused), fmt.Sprintf("Permissions Violation for Publish to %q", subj), service)
		}
		for _, subj := range subscribe {
			_, err := nc.SubscribeSync(subj)
			require.NoError(t, err)
			require.ErrorContains(t, await.Value(t, refused), fmt.Sprintf("Permissions Violation for Subscription to %q", subj), service)
		}
		nc.Close()
	}
}

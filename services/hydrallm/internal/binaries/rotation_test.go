//go:build unix

package binaries

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/config"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/processtest"
)

// rotation is a gateway under load whose keys change one after another. Provider p has its key in the configuration, q at run time.
type rotation struct {
	*manager
	process *processtest.Process
	api     client
	path    string // of the configuration
	p, q    *fakellm.Server
	admin   string

	keys   sync.RWMutex      // held by each request of the load, so that nobody asks with the old key while clients change theirs
	key    map[string]string // of each client
	served atomic.Int64
	failed chan error
}

// What keys are at first.
const (
	pOld, qOld           = "provider-p-first-11aa", "provider-q-first-11aa"
	listedOld, listedNew = "client-listed-first-1", "client-listed-second"
	adminNew             = "another-admin-key-of-the-test"
)

func newRotation(t *testing.T) *rotation {
	t.Helper()
	r := &rotation{p: fakellm.Start(t), q: fakellm.Start(t), path: filepath.Join(t.TempDir(), "config.yaml"), admin: adminKey, failed: make(chan error, 100)}
	var addr string
	r.manager, addr = newManager(t, func(string) []string { return []string{"CONFIG_PATH=" + r.path} })
	r.api = client{base: "http://" + addr + "/v1"}
	r.p.Handle(fakellm.Talk("hello"))
	r.q.Handle(fakellm.Talk("hello"))
	r.configure(t, pOld, "admin_key: "+adminKey+", client_keys: ["+listedOld+"]")
	r.begin(t)
	r.manage(t, http.MethodPost, "/keys", `{"provider":"q","keys":["`+qOld+`"]}`)
	return r
}

// configure writes the configuration, with members of server.
func (r *rotation) configure(t *testing.T, pKey, server string) {
	t.Helper()
	require.NoError(t, os.WriteFile(r.path, fmt.Appendf(nil, `
server: {host: 127.0.0.1, port: %s, %s}
providers: [{id: p, url: "%s/v1", keys: [%s]}, {id: q, url: "%s/v1", keys: []}]
upstreams: [{id: a, provider: p, model: real}, {id: b, provider: q, model: real}]
models: [{name: a, upstreams: [a]}, {name: b, upstreams: [b]}]
routing: {final_fallback: "", aliases: {}}
web: {enabled: false}
`, portOf(t, strings.TrimSuffix(strings.TrimPrefix(r.api.base, "http://"), "/v1")), server, r.p.URL(), pKey, r.q.URL()), 0o600))
}

func (r *rotation) begin(t *testing.T) {
	t.Helper()
	r.process = r.start(t)
	require.Equal(t, "READY=1", r.told(t))
}

func (r *rotation) restart(t *testing.T) {
	t.Helper()
	r.process.Signal(t, syscall.SIGTERM)
	require.Equal(t, "STOPPING=1", r.told(t))
	await.Value(t, r.process.Gone())
	require.Equal(t, 0, r.process.ExitCode())
	r.begin(t)
}

// manage asks an admin route.
func (r *rotation) manage(t *testing.T, method, path, body string) string {
	t.Helper()
	got := r.api.do(t, method, "/admin"+path, body, "X-Admin-Key", r.admin)
	require.Less(t, got.status, http.StatusMultipleChoices, got.body)
	return got.body
}

// load has each client ask both models in turn until the context ends.
func (r *rotation) load(ctx context.Context, wait *sync.WaitGroup) {
	for name := range r.key {
		wait.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := r.one(context.WithoutCancel(ctx), name, []string{"a", "b"}[i%2]); err != nil {
					r.failed <- fmt.Errorf("client %s: %w", name, err)
					return
				}
				r.served.Add(1)
			}
		})
	}
}

func (r *rotation) one(ctx context.Context, name, model string) error {
	r.keys.RLock()
	defer r.keys.RUnlock()
	return r.whole(ctx, r.key[name], model)
}

// whole asks for an answer, which has to be whole.
func (r *rotation) whole(ctx context.Context, key, model string) error {
	got, err := read(client{base: r.api.base, key: key}.try(ctx, http.MethodPost, "/chat/completions", question(model, true)))
	if err == nil && (got.status != http.StatusOK || !strings.Contains(got.body, "hello") || !strings.Contains(got.body, "[DONE]")) {
		err = fmt.Errorf("status %d: %s", got.status, got.body)
	}
	return err
}

// held begins a request of a client that the provider answers when release is called, which gives what became of it.
func (r *rotation) held(t *testing.T, upstream *fakellm.Server, key, model string) (release func() error) {
	t.Helper()
	gate, taken, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	var one atomic.Bool
	talk := fakellm.Talk("hello")
	upstream.Handle(func(q fakellm.Request) fakellm.Answer {
		if strings.Contains(string(q.Body), "held") && one.CompareAndSwap(false, true) {
			close(taken)
			<-gate
		}
		return talk(q)
	})
	go func() {
		body := strings.Replace(question(model, false), `"hi"`, `"held"`, 1)
		got, err := read(client{base: r.api.base, key: key}.try(t.Context(), http.MethodPost, "/chat/completions", body))
		if err == nil && !strings.Contains(got.body, "hello") {
			err = errors.New(got.body)
		}
		done <- err
	}()
	await.Value(t, taken)
	return func() error { open(); return await.Value(t, done) }
}

// after gives the keys that the providers see from now on, when a while has passed in which the load went on.
func (r *rotation) after(t *testing.T) (seen map[string]bool) {
	t.Helper()
	r.keys.Lock() // nothing is under way
	p, q, from := len(r.p.Requests()), len(r.q.Requests()), r.served.Load()
	r.keys.Unlock()
	await.True(t, func() bool {
		return r.served.Load() > from+8 && len(r.p.Requests()) > p && len(r.q.Requests()) > q || len(r.failed) > 0
	})
	seen = map[string]bool{}
	for _, q := range append(r.p.Requests()[p:], r.q.Requests()[q:]...) {
		seen[q.Key()] = true
	}
	return seen
}

// each kind of key is changed as the page on operations says while clients go on asking. No request fails, the old key is used and taken no more
// afterwards, the new one is.
func TestRotation(t *testing.T) {
	t.Parallel()
	r := newRotation(t)
	made := r.manage(t, http.MethodPost, "/client-keys", `{"name":"laptop"}`)
	id := gjson.Get(made, "id").Str
	require.NotEmpty(t, id)
	r.key = map[string]string{"listed": listedOld, "named": gjson.Get(made, "key").Str}
	ctx, enough := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer enough()
	r.load(ctx, &load)
	require.Equal(t, map[string]bool{pOld: true, qOld: true}, r.after(t))
	refused := func(key string) {
		t.Helper()
		require.Equal(t, http.StatusUnauthorized, client{base: r.api.base, key: key}.ask(t, "a").status)
	}

	// Of a provider, in the configuration.
	const pNew = "provider-p-second-22bb"
	release := r.held(t, r.p, listedOld, "a")
	r.configure(t, pNew, "admin_key: "+adminKey+", client_keys: ["+listedOld+"]")
	r.process.Signal(t, syscall.SIGHUP)
	require.True(t, strings.HasPrefix(r.told(t), "RELOADING=1\n"))
	require.Equal(t, "READY=1", r.told(t))
	require.Equal(t, map[string]bool{pNew: true, qOld: true}, r.after(t))
	require.NoError(t, release(), "a call that runs goes on")

	// Of a provider, added at run time.
	const qNew = "provider-q-second-22bb"
	release = r.held(t, r.q, listedOld, "b")
	r.manage(t, http.MethodPost, "/keys", `{"provider":"q","keys":["`+qNew+`"]}`)
	r.manage(t, http.MethodDelete, "/keys", `{"provider":"q","index":0,"id":"`+config.Mask(qOld)+`"}`)
	require.Equal(t, map[string]bool{pNew: true, qNew: true}, r.after(t))
	require.NoError(t, release(), "a call that runs goes on")

	// Of a client, with a name.
	named := r.key["named"]
	release = r.held(t, r.p, named, "a")
	r.keys.Lock()
	r.key["named"] = gjson.Get(r.manage(t, http.MethodPost, "/client-keys/"+id+"/rotate", ""), "key").Str
	r.keys.Unlock()
	require.NotEqual(t, named, r.key["named"])
	refused(named)
	r.after(t)
	require.NoError(t, release(), "an answer that runs goes on")

	// Of a client, in the configuration, and the admin key: both are valid, then the old ones are taken out.
	r.configure(t, pNew, "admin_key: "+adminNew+", admin_key_previous: "+adminKey+", client_keys: ["+listedOld+", "+listedNew+"]")
	r.restart(t)
	r.admin = adminNew
	require.Equal(t, map[string]bool{pNew: true, qNew: true}, r.after(t), "the added key opens")
	require.Equal(t, http.StatusUnauthorized, r.api.do(t, http.MethodGet, "/admin/stats", "", "X-Admin-Key", adminKey).status)
	r.manage(t, http.MethodGet, "/stats", "")
	await.True(t, func() bool { return strings.Contains(r.process.Log.String(), "is encrypted with the new admin key") })
	r.keys.Lock()
	r.key["listed"] = listedNew
	r.keys.Unlock()
	r.configure(t, pNew, "admin_key: "+adminNew+", client_keys: ["+listedNew+"]")
	r.restart(t)
	require.Equal(t, map[string]bool{pNew: true, qNew: true}, r.after(t), "it was encrypted anew")
	refused(listedOld)
	refused(named)
	require.Contains(t, r.manage(t, http.MethodGet, "/client-keys", ""), `"laptop"`)

	enough()
	load.Wait()
	close(r.failed)
	for err := range r.failed {
		t.Error(err)
	}
	r.process.End(t, syscall.SIGTERM)
	require.Equal(t, 0, r.process.ExitCode())
}

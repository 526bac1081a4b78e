//go:build e2e

package chaos

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

// stack is a distributed gateway that can be broken: three NATS servers with three copies of everything, PostgreSQL, two of each service. It is made of processes or
// of containers.
type stack interface {
	first(service string) part
	leader(t *testing.T) part // the NATS server that leads the stream of requests
	killDatabase(t *testing.T) (start func())
	// pull parts the first dispatcher from NATS as a cable that is pulled does: nothing passes, and nobody is told.
	pull(t *testing.T) (join func())
	// restartWorkers replaces all that are not ingresses, one after the other, as an upgrade does.
	restartWorkers(t *testing.T)
	awaitReady(t *testing.T)
}

// part is a process of a stack, or a container.
type part interface {
	kill(t *testing.T)
	start(t *testing.T) // what was killed
	pause(t *testing.T)
	resume(t *testing.T)
}

// distributed is a gateway with all that is around it.
type distributed struct {
	stack

	upstream *fakellm.Server
	pages    *httptest.Server // of the web
	fronts   []string         // addresses of the ingresses
}

// pageTime is how long a page of the web takes.
const pageTime = 100 * time.Millisecond

// newDistributed starts the upstream and the web on an address of this machine, for a stack that is still to come.
func newDistributed(t *testing.T, host string) *distributed {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	x := &distributed{upstream: fakellm.StartAt(t, host), pages: &httptest.Server{
		Listener: listener,
		Config: &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			<-time.After(pageTime)
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, "<html><title>A page</title><body><main><p>%s</p></main></body></html>", strings.Repeat("The page says that all is well. ", 40))
		})},
	}}
	x.pages.Start()
	t.Cleanup(x.pages.Close)
	return x
}

// slots is how many calls the providers take at the same time: more than there are clients, so that nobody is refused, whatever a dead dispatcher holds.
const slots = 500

// adminKey opens the admin routes.
const adminKey = "key-of-the-admin"

// config is the configuration of a service. Where it listens, the database and what NATS is like depends on the stack.
func (x *distributed) config(host, port, database, nats string) []byte {
	web, _, _ := net.SplitHostPort(x.pages.Listener.Addr().String()) // an address of a listener has both
	return fmt.Appendf(nil, `
server: {host: %s, port: %s, queue_timeout: 90s, drain_timeout: 60s, admin_key: %s}
providers:
  - {id: p, url: "%s/v1", key: key-of-the-provider, max_concurrency: %d}
  - {id: groq, url: "%s/v1", keys: [key-one, key-two], default_models: {free: fast}}
upstreams: [{id: u, provider: p, model: real}, {id: vectors, provider: p, model: embedding}]
models: [{name: m, upstreams: [u]}, {name: v, upstreams: [vectors]}]
routing: {final_fallback: "", aliases: {}}
web: {enabled: false, browser: never, cache_ttl: 0s, allow_hosts: [%s]}
sessions: {database: %q, compressor: "off"}
nats: {%s, replicas: 3}
`, host, port, adminKey, x.upstream.URL(), slots, x.upstream.URL(), web, database, nats)
}

// checkIdle waits until no slot is taken, at any dispatcher.
func (x *distributed) checkIdle(t *testing.T) {
	t.Helper()
	await.True(t, func() bool { return x.upstream.Active() == 0 }, "no upstream call is under way")
	for _, front := range x.fronts {
		await.True(t, func() bool {
			state, ok := x.admin(t, front, "/status")
			taken := int64(0)
			for _, slot := range gjson.Get(state, "slots").Array() {
				taken += slot.Get("active").Int()
			}
			return ok && gjson.Get(state, "slots.#").Int() > 0 && taken == 0
		}, "all slots are free")
	}
}

// admin gets an admin route.
func (x *distributed) admin(t *testing.T, front, path string) (body string, ok bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+front+"/v1/admin"+path, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("X-Admin-Key", adminKey)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(text), resp.StatusCode == http.StatusOK
}

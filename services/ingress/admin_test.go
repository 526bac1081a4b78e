package ingress_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/ingress"
	"hydrallm/services/ingress/internal/httpapi"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/dispatcherhealth"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

// required are the 25 routes of R-330.
var required = []string{
	"GET /v1/admin/stats",
	"GET /v1/admin/dashboard",
	"GET /v1/admin/status",
	"GET /v1/admin/logs",
	"POST /v1/admin/logs/clear",
	"GET /v1/admin/comm-logs",
	"DELETE /v1/admin/comm-logs",
	"POST /v1/admin/refresh-models",
	"POST /v1/admin/probe",
	"POST /v1/admin/keys",
	"GET /v1/admin/sessions",
	"POST /v1/admin/sessions/new",
	"DELETE /v1/admin/sessions/{id}",
	"GET /v1/admin/sessions/{id}/messages",
	"POST /v1/admin/sessions/cleanup",
	"POST /v1/admin/sessions/import",
	"GET /v1/admin/settings",
	"PUT /v1/admin/settings",
	"GET /v1/admin/onboarding",
	"POST /v1/admin/onboarding",
	"GET /v1/admin/install/status",
	"POST /v1/admin/install/{tool}",
	"GET /v1/admin/intent/keywords",
	"POST /v1/admin/intent/keywords",
	"POST /v1/admin/intent/keywords/learn",
}

// the table has the routes that are required, in their order, and no others but those that it names as going beyond.
func TestAdminRoutesAreThoseRequired(t *testing.T) {
	t.Parallel()
	got, beyond := httpapi.AdminRoutes()
	require.Equal(t, required, got)
	for _, r := range beyond {
		require.NotContains(t, required, r)
	}
}

// allAdminRoutes gives every route as a request would call it, and some that do not exist.
func allAdminRoutes() []string {
	list, beyond := httpapi.AdminRoutes()
	list = slices.Concat(required, list, beyond)
	for i := range list {
		list[i] = strings.NewReplacer("{id}", "some-id", "{tool}", "opencode").Replace(list[i])
	}
	return append(list, []string{
		"GET /v1/admin",
		"GET /v1/admin/",
		"OPTIONS /v1/admin/status",
		"POST /v1/admin/install/rm-rf",
		"GET /v1/admin/no/such/route",
	}...)
}

// bodies are what routes want.
var bodies = map[string]string{
	"POST /v1/admin/keys":                  `{"provider":"p","keys":["k"]}`,
	"DELETE /v1/admin/keys":                `{"provider":"p","index":0}`,
	"POST /v1/admin/sessions/import":       `{"session_id":"s"}`,
	"POST /v1/admin/intent/keywords":       `{"lang":"en","keywords":[]}`,
	"POST /v1/admin/intent/keywords/learn": `{"query":"q"}`,
	"POST /v1/admin/sessions/{id}/fork":    `{}`,
	"POST /v1/admin/onboarding":            `{"enabled_models":[]}`,
	"PUT /v1/admin/settings":               `{"locale":"en"}`,
	"POST /v1/admin/markdown":              `{"text":"*hi*"}`,
	"POST /v1/admin/client-keys":           `{"name":"another"}`,
}

// anything answers every operation that routes ask for with an empty object or array.
func anything(g *gateway) {
	h := map[string]query.Handlers{query.Dispatcher: {}, query.SessionWriter: {}, query.Enricher: {}}
	empty := func(answer string) func(context.Context, []byte) ([]byte, error) {
		return func(context.Context, []byte) ([]byte, error) { return []byte(answer), nil }
	}
	for _, op := range []string{"status", "add_keys", "remove_key", "clear_comm_log", "probe", "refresh_models"} {
		h[query.Dispatcher][op] = empty("{}")
	}
	for _, op := range []string{"stats", "clear_logs", "new_session", "messages", "session", "delete_session", "clean_sessions", "fork_session", "requests", "timeline"} {
		h[query.SessionWriter][op] = empty("{}")
	}
	for _, op := range []string{"calls", "logs", "sessions"} {
		h[query.SessionWriter][op] = empty("[]")
	}
	h[query.SessionWriter]["backup"] = empty(`{"data":"e30=","end":true}`)
	h[query.Dispatcher]["comm_log"] = empty("[]")
	for _, op := range []string{"keywords", "add_keywords", "learn_keywords"} {
		h[query.Enricher][op] = empty("{}")
	}
	h[query.Dispatcher]["comm_log"] = empty("[]")
	for service, handlers := range h {
		g.answers(service, handlers)
	}
}

// with the right key each route answers, and none takes another method.
func TestEachAdminRouteAnswers(t *testing.T) {
	t.Parallel()
	g := settled(t, "providers: []")
	anything(g)
	list, beyond := httpapi.AdminRoutes()
	all := slices.Concat(list, beyond)
	key := g.makeKey("one")
	for _, r := range all {
		if r == "GET /v1/admin/stream" {
			continue // it has no end
		}
		method, path, _ := strings.Cut(strings.NewReplacer("client-keys/{id}", "client-keys/"+key.ID, "{id}", "s").Replace(r), " ")
		if strings.HasSuffix(path, "{tool}") || strings.HasSuffix(path, "/demo") { // see TestInstallIsOff, TestDemoRoutes
			continue
		}
		a := g.do(method, path, strings.NewReader(bodies[r]), "X-Admin-Key", adminKey)
		require.Equal(t, http.StatusOK, a.StatusCode, "%s: %s", r, a.body)
		require.True(t, json.Valid([]byte(a.body)), path)
	}
}

// what Allow names is what a path takes: GET and HEAD alike, and each other method that has a route. HEAD answers with the headers alone, and begins
// nothing.
func TestAdminRoutesTakeWhatTheyAllow(t *testing.T) {
	t.Parallel()
	g := settled(t, "providers: []", func(c *ingress.Config) { c.Demo = &switches{} })
	anything(g)
	list, beyond := httpapi.AdminRoutes()
	for _, r := range slices.Concat(list, beyond) {
		method, path, _ := strings.Cut(strings.NewReplacer("{id}", "s", "{tool}", "status").Replace(r), " ")
		ask := func(method string) answer { return g.do(method, path, nil, "X-Admin-Key", adminKey) }
		allowed := strings.Split(ask("PURGE").Header.Get("Allow"), ", ")
		require.Contains(t, allowed, method, path)
		for _, other := range []string{"HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			a := ask(other)
			require.Equal(t, slices.Contains(allowed, other), a.StatusCode != http.StatusMethodNotAllowed, "%s %s", other, path)
			if a.StatusCode == http.StatusMethodNotAllowed {
				require.Equal(t, allowed, strings.Split(a.Header.Get("Allow"), ", "), "%s %s", other, path)
			}
		}
		if method == http.MethodGet {
			require.Contains(t, allowed, http.MethodHead)
			a := ask(http.MethodHead)
			require.Equal(t, http.StatusOK, a.StatusCode, "HEAD %s", path)
			require.Empty(t, a.body)
			require.NotEmpty(t, a.Header.Get("Content-Type"), path)
		}
	}
}

// a session may be called like a route.
func TestSessionsThatAreCalledLikeRoutes(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	anything(g)
	for _, id := range []string{"new", "cleanup", "import", "messages"} {
		a := g.do(http.MethodDelete, "/v1/admin/sessions/"+id, nil, "X-Admin-Key", adminKey)
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		a = g.do(http.MethodGet, "/v1/admin/sessions/"+id+"/messages", nil, "X-Admin-Key", adminKey)
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	}
	for _, id := range []string{"-x", "a%20b", strings.Repeat("x", 200)} {
		requireError(t, g.do(http.MethodDelete, "/v1/admin/sessions/"+id, nil, "X-Admin-Key", adminKey), http.StatusNotFound)
	}
}

// the status is that of all dispatchers, also when one of them does not answer.
func TestStatusOfAllDispatchers(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	bucket, err := g.worker.Bucket(t.Context(), subject.StateBucket)
	require.NoError(t, err)
	for i, id := range []string{"d1", "d2", "gone"} {
		state, err := json.Marshal(contract.DispatcherState{Providers: map[string]contract.ProviderState{"p": {}}})
		require.NoError(t, err)
		_, err = bucket.Put(t.Context(), dispatcherhealth.Key(id), state)
		require.NoError(t, err)
		if id == "gone" {
			continue
		}
		h := query.Handlers{}
		query.GetStatus.Handle(h, func(context.Context, query.None) (query.Status, error) {
			return query.Status{
				Status: query.Online, Providers: map[string]query.ProviderStatus{"p": {Healthy: i == 1}},
				Slots: []query.Load{{ID: "u", Active: i + 1, Limit: 4}},
			}, nil
		})
		s, err := g.worker.Serve(t.Context(), bus.QueryConfig{Service: query.Dispatcher, Instance: id, Handlers: h})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	}
	var a answer
	await.True(t, func() bool {
		a = g.do(http.MethodGet, "/v1/admin/status", nil, "X-Admin-Key", adminKey)
		return a.StatusCode == http.StatusOK && gjson.Get(a.body, "dispatchers.#").Int() == 3
	})
	require.True(t, gjson.Get(a.body, "providers.p.healthy").Bool(), a.body)
	require.Equal(t, int64(3), gjson.Get(a.body, "slots.0.active").Int())
	require.Equal(t, "gone", gjson.Get(a.body, `dispatchers.#(error!="").id`).Str)
}

// events gives those that the session writer would keep.
func events(t *testing.T, g *gateway) <-chan contract.Log {
	t.Helper()
	kept := make(chan contract.Log, 16)
	facts, err := g.worker.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 1}, func(_ context.Context, batch []bus.Fact) error {
		for _, f := range batch {
			var l contract.Log
			if err := json.Unmarshal(f.Data, &l); err != nil {
				return fmt.Errorf("reading a fact: %w", err)
			}
			kept <- l
		}
		return nil
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, facts.Stop(context.WithoutCancel(t.Context()))) })
	return kept
}

// a key that was taken for a provider is neither kept nor told.
func TestKeyInTheWrongPlace(t *testing.T) {
	t.Parallel()
	g := setupOn(t, natstest.Start(t), withAdmin)
	kept := events(t, g)
	refuse := func(asked) ([]byte, error) { return nil, fault.New(fault.Invalid, "There is no provider with this id") }
	dispatch(t, g, refuse, "add_keys", "remove_key")
	serveAsked(t, g, query.SessionWriter, refuse, "delete_session", "fork_session")
	serveAsked(t, g, query.Enricher, refuse, "add_keywords")
	const key = "Misplaced-Key-4f5a"
	for route, body := range map[string]string{
		"POST /v1/admin/keys":                           `{"provider":"` + key + `","keys":["p"]}`,
		"DELETE /v1/admin/keys":                         `{"provider":"` + key + `","index":1}`,
		"DELETE /v1/admin/client-keys/" + key:           ``,
		"PATCH /v1/admin/client-keys/" + key:            `{}`,
		"POST /v1/admin/client-keys/" + key + "/rotate": ``,
		"DELETE /v1/admin/sessions/" + key:              ``,
		"POST /v1/admin/sessions/" + key + "/fork":      ``,
		"POST /v1/admin/install/" + key:                 ``,
		"POST /v1/admin/intent/keywords":                `{"lang":"` + key + `","keywords":["p"]}`,
		"POST /v1/admin/sessions/import":                `{"session_id":"` + key + `"}`,
	} {
		method, path, _ := strings.Cut(route, " ")
		a := g.do(method, path, strings.NewReader(body), "X-Admin-Key", adminKey)
		require.GreaterOrEqual(t, a.StatusCode, http.StatusBadRequest, route)
		l := await.Value(t, kept)
		require.Equal(t, "WARNING", l.Level)
		require.NotContains(t, a.body+string(l.Metadata)+g.log.String(), key, route)
	}
}

// what an operator changes is kept as an event, with who, what and how it ended; what is only read is not. Nothing of a key is in it.
func TestChangesAreKept(t *testing.T) {
	t.Parallel()
	g := setupOn(t, natstest.Start(t), withAdmin)
	anything(g)
	kept := events(t, g)
	g.do(http.MethodGet, "/v1/admin/stats", nil, "X-Admin-Key", adminKey)
	a := g.do(http.MethodPost, "/v1/admin/keys", strings.NewReader(`{"provider":"p","keys":["Added-Key-4f5a"]}`), "X-Admin-Key", adminKey)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	l := await.Value(t, kept)
	require.Equal(t, []string{"INFO", "AUDIT", "POST /v1/admin/keys"}, []string{l.Level, l.Category, l.Message})
	require.Equal(t, a.Header.Get("X-Request-Id"), l.RequestID)
	require.JSONEq(t, `{"route":"POST /v1/admin/keys","from":"127.0.0.1","status":200,"notes":{"provider":"p","added":0}}`, string(l.Metadata))

	requireError(t, g.do(http.MethodDelete, "/v1/admin/keys", strings.NewReader(`{"id":"Added-Key-4f5a"}`), "X-Admin-Key", adminKey), http.StatusBadRequest)
	l = await.Value(t, kept)
	require.Equal(t, "WARNING", l.Level)
	require.Equal(t, int64(http.StatusBadRequest), gjson.GetBytes(l.Metadata, "status").Int())
	require.NotContains(t, string(l.Metadata)+g.log.String(), "Added-Key")
}

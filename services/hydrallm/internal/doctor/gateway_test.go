package doctor

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher"
)

// fakeGateway answers as a gateway does, but for what a test changes.
func fakeGateway(t *testing.T, change map[string]http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	routes := map[string]http.HandlerFunc{
		"GET /v1":              text(200, `{"status":"online","version":"v9.9.9"}`),
		"GET /healthz":         text(200, `{"status":"ok"}`),
		"GET /readyz":          text(200, `{"status":"ready"}`),
		"GET /v1/admin/status": text(200, `{"status":"online","providers":{"p":{"healthy":true}},"chains":{"m":["u"]}}`),
		"POST /v1/chat/completions": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Gateway-Provider", "p")
			w.Header().Set("X-Gateway-Model", "large")
			w.Header().Set("X-Gateway-Attempts", "1")
			_, _ = w.Write([]byte(chunks("ok") + "data: [DONE]\n\n"))
		},
	}
	maps.Copy(routes, change)
	for route, handler := range routes {
		mux.HandleFunc(route, handler)
	}
	return serve(t, mux).URL
}

const restingKeys = `{"key_statistics":{"p":{"total":2,"keys":[{"cooldown_remaining":40,"error":"rate_limit"},{}]}}}`

// each way in which a gateway does not work is told from the others.
func TestGatewayStates(t *testing.T) {
	t.Parallel()
	type routes = map[string]http.HandlerFunc
	tests := map[string]struct {
		change routes
		check  string
		state  State
		found  string
		do     string
	}{
		"well":           {nil, "gateway: answer of m", OK, "from p, model large, attempt 1", ""},
		"version":        {nil, "gateway: http://", OK, "version v9.9.9", ""},
		"status":         {nil, "gateway: status", OK, "1 provider, 1 chain", ""},
		"another server": {routes{"GET /v1": text(200, `{"hello":"world"}`)}, "gateway: http://", Fail, "no HydraLLM", "another port"},
		"not ready":      {routes{"GET /readyz": text(503, `{"status":"not ready","reason":"NATS or its streams are not there"}`)}, "gateway: ready", Fail, "NATS", "NATS server"},
		"degraded":       {routes{"GET /readyz": text(200, `{"status":"degraded","reason":"the database can't be had"}`)}, "gateway: ready", Warn, "database", "database"},
		"behind a proxy": {routes{"GET /healthz": text(404, `<html>`)}, "gateway: alive", Skipped, "not passed on", ""},
		"admin key":      {routes{"GET /v1/admin/status": text(401, `{}`)}, "gateway: status", Fail, "refuses the admin key", "ADMIN_API_KEY"},
		"provider":       {routes{"GET /v1/admin/status": text(200, `{"providers":{"p":{"problem":"all its keys rest"}}}`)}, "gateway: provider p", Warn, "all its keys rest", "web interface"},
		"keys":           {routes{"GET /v1/admin/status": text(200, restingKeys)}, "gateway: keys of p", Warn, "1 of 2 rest, the last for 40.0 s (rate_limit)", "probe"},
		"circuit":        {routes{"GET /v1/admin/status": text(200, `{"circuits":{"u":{"state":"open","remaining":5000000000}}}`)}, "gateway: circuit of u", Warn, "another 5.0 s", "left alone"},
		"client key":     {routes{"POST /v1/chat/completions": refuse(401, "x", "a key is needed")}, "gateway: answer", Fail, "http 401: a key is needed", "CLIENT_API_KEYS"},
		"no such model":  {routes{"POST /v1/chat/completions": refuse(404, "x", "no model")}, "gateway: answer", Fail, "http 404", "--model"},
		"no provider":    {routes{"POST /v1/chat/completions": refuse(503, "x", "busy")}, "gateway: answer", Fail, "http 503: busy", "rows of the providers"},
		"stream ends":    {routes{"POST /v1/chat/completions": stream(chunks("ok"))}, "gateway: answer", Fail, "broke off", "request"},
		"stream fails":   {routes{"POST /v1/chat/completions": stream("data: {\"error\":{\"message\":\"gone\"}}\n\n")}, "gateway: answer", Fail, "gone", "request"},
		"second upstream": {routes{"POST /v1/chat/completions": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Gateway-Attempts", "2")
			stream(chunks("ok")+"data: [DONE]\n\n")(w, r)
		}}, "gateway: answer", Warn, "attempt 2", "first upstream failed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := fakeGateway(t, tt.change)
			r := examine(t, one(serve(t, vendor{}).URL+"/v1", ""), func(o *Options) { o.URL = base + "/v1/" })
			row := r.row(t, tt.check)
			require.Equal(t, tt.state, row.State, row)
			require.Contains(t, row.Found, tt.found)
			require.Contains(t, row.Do, tt.do)
		})
	}
}

// keys go to the gateway that was named, and not where it redirects to.
func TestKeysAreNotSentElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Admin-Key")+r.Header.Get("Authorization") != "" {
			t.Error("a key was sent to another server")
		}
	}))
	away := http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP
	base := fakeGateway(t, map[string]http.HandlerFunc{"GET /v1/admin/status": away, "POST /v1/chat/completions": away})
	r := examine(t, one(serve(t, vendor{}).URL+"/v1", ""), func(o *Options) { o.URL = base })
	require.Equal(t, Fail, r.row(t, "gateway: status").State)
	require.Equal(t, Fail, r.row(t, "gateway: answer").State)
}

// what is not running is no failure, unless its address was named.
func TestGatewayIsNotThere(t *testing.T) {
	t.Parallel()
	url := serve(t, vendor{}).URL + "/v1"
	r := examine(t, one(url, ""), nil)
	require.Equal(t, Skipped, r.row(t, "gateway").State)
	r = examine(t, one(url, ""), func(o *Options) { o.URL, o.Questions = "http://127.0.0.1:1", dispatcher.NoQuestions })
	require.Equal(t, Fail, r.row(t, "gateway").State)
	require.True(t, strings.HasPrefix(r.row(t, "gateway").Check, "gateway: http://127.0.0.1:1"))
}

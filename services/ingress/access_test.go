package ingress_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/surface/chat"
)

const (
	clientKey = "Client-Secret-98f13708210194c4"
	adminKey  = "Admin-Secret-3c59dc048e885024"
	origin    = "https://app.example"
)

// AUTH-01, AUTH-04: who has no key gets a 401 before anything else, and keys show up nowhere.
func TestClientKeys(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.ClientKeys = []string{clientKey, "second"} })
	g.work(echo)
	right, wrong := []string{"Authorization", "bearer  " + clientKey}, []string{"Authorization", "Bearer Wrong-Secret-1ff1de774005f8da"}
	require.Equal(t, http.StatusOK, g.chat(chatBody, right...).StatusCode)
	require.Equal(t, http.StatusOK, g.chat(chatBody, "X-Api-Key", clientKey).StatusCode)
	require.Equal(t, http.StatusOK, g.do(http.MethodGet, "/v1/models", nil, right...).StatusCode)
	for _, path := range []string{"/v1/models", "/v1/models/x", "/v1/chat/completions", "/v1/responses", "/v1/no/such/route"} {
		a := g.do(http.MethodGet, path, nil, wrong...)
		requireError(t, a, http.StatusUnauthorized)
		require.NotContains(t, a.body, "Wrong-Secret")
	}
	requireError(t, g.chat("{broken", wrong...), http.StatusUnauthorized)
	requireError(t, g.chat(chatBody), http.StatusUnauthorized)
	requireError(t, g.chat(chatBody, "Authorization", "Bearer "+clientKey, "X-Api-Key", "second"), http.StatusUnauthorized)
	for _, path := range []string{"/", "/healthz", "/metrics", "/readyz"} {
		require.NotEqual(t, http.StatusUnauthorized, g.do(http.MethodGet, path, nil).StatusCode, "%s needs no key", path)
	}
	for _, secret := range []string{clientKey[:9], "Wrong-Sec"} {
		require.NotContains(t, g.log.String(), secret)
	}
}

// Bodies and headers are in no log line, whatever the level (AUTH-04, R-371).
func TestNothingOfTheClientIsLogged(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.Debug, c.MaxBody = true, 1000 })
	g.work(echo)
	const secret = "Very-Private-0123456789"
	for _, body := range []string{wrap(secret), wrap(secret) + "}", `{"` + secret + `"`, wrap(strings.Repeat(secret, 100)), `{"model":"` + secret + `"}`} {
		g.chat(body, "Cookie", secret, "X-Custom", secret, "X-Request-Id", "a "+secret)
		g.do(http.MethodGet, "/"+secret+"?"+secret, nil)
	}
	_ = exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: x\r\nbroken "+secret+"\r\n\r\n", 1)
	require.NotContains(t, g.log.String(), secret)
	require.Contains(t, g.log.String(), "level=DEBUG")
}

// who is refused although no upstream was asked leaves a line with the address; what an upstream refuses is logged by who asked it.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.ClientKeys, c.Debug = []string{clientKey}, false })
	refusal := &fault.Fault{Kind: fault.Failed, Message: "No provider is configured", Code: "no_provider"}
	asked := fault.New(fault.Failed, "all upstreams failed")
	g.work(func(ctx context.Context, r *reply) {
		f, head := refusal, refusal.Head()
		if r.work.Request.Model == "asked" {
			f, head = asked, asked.Head()
			head.Header = append(head.Header, [2]string{"X-Gateway-Attempts", "2"})
		}
		_ = r.Head(head)
		_ = r.Data(ctx, chat.Errors{}.AppendBody(nil, f, ""))
		_ = r.end()
	})
	key := []string{"Authorization", "Bearer " + clientKey}
	line := func(want ...string) {
		t.Helper()
		text := g.log.String()
		last, _, _ := strings.Cut(text[strings.LastIndex(text, "request refused"):], "\n")
		for _, part := range append(want, "client=127.0.0.1") {
			require.Contains(t, last, part)
		}
	}
	requireError(t, g.chat(chatBody), http.StatusUnauthorized)
	line("status=401", "code=unauthorized", "route=chat")
	requireError(t, g.do(http.MethodGet, "/v1/unknown", nil, key...), http.StatusNotFound)
	line("status=404", "code=not_found")
	requireError(t, g.do(http.MethodGet, "/v1/models/unknown", nil, key...), http.StatusNotFound)
	line("status=404", "code=model_not_found", "route=models")
	requireError(t, g.chat("{", key...), http.StatusBadRequest)
	line("status=400", "code=invalid_json")
	requireError(t, g.chat(streamBody, key...), http.StatusServiceUnavailable)
	line("status=503", "code=no_provider", "model=m")
	requireError(t, g.chat(strings.Replace(chatBody, `"m"`, `"asked"`, 1), key...), http.StatusServiceUnavailable)
	require.Equal(t, 5, strings.Count(g.log.String(), `level=INFO msg="request refused"`))
}

// ADMIN-01: without a configured key everything is closed, whatever the request carries.
func TestAdminIsClosedWithoutAKey(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	for _, r := range allAdminRoutes() {
		method, path, _ := strings.Cut(r, " ")
		requireError(t, g.do(method, path, nil), http.StatusServiceUnavailable)
		requireError(t, g.do(method, path, strings.NewReader("{broken"), "X-Admin-Key", "anything"), http.StatusServiceUnavailable)
		requireError(t, g.do(method, path, nil, "X-Admin-Key", ""), http.StatusServiceUnavailable)
	}
}

// ADMIN-02, R-332: the key decides before anything else of the request is looked at.
func TestAdminKey(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) {
		c.AdminKey, c.ClientKeys, c.CORSOrigins = adminKey, []string{clientKey}, []string{origin, "*"}
	})
	serve(t, g, "dispatcher", map[string]string{"status": `{"status":"ok","n":1.0}`})
	for i, r := range allAdminRoutes() {
		method, path, _ := strings.Cut(r, " ")
		requireError(t, g.do(method, path, nil), http.StatusUnauthorized)
		requireError(t, g.do(method, path, nil, "Authorization", "Bearer "+clientKey), http.StatusUnauthorized)
		if i >= len(required) { // further wrong keys would be too many from one address
			continue
		}
		a := g.do(method, path, strings.NewReader("{broken"), "X-Admin-Key", strings.ToLower(adminKey), "Origin", origin)
		requireError(t, a, http.StatusUnauthorized)
		require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"), "R-383")
	}
	a := g.do(http.MethodGet, "/v1/admin/status", nil, "X-Admin-Key", adminKey, "Origin", origin)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.Equal(t, `{"status":"ok","n":1.0}`, a.body, "the answer is passed on as it is")
	require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"))
	require.NotContains(t, g.log.String(), adminKey[:9])
	require.NotContains(t, g.log.String(), strings.ToLower(adminKey)[:9])
	require.Contains(t, g.log.String(), "wrong admin key")
}

// what stands between client and gateway may look at one of several keys, the gateway looks at all.
func TestSeveralAdminKeys(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	serve(t, g, "dispatcher", map[string]string{"status": `{}`})
	for _, tt := range []struct {
		keys []string
		want int
	}{
		{[]string{adminKey, adminKey}, http.StatusOK},
		{[]string{adminKey, "other"}, http.StatusUnauthorized},
		{[]string{"other", adminKey}, http.StatusUnauthorized},
		{[]string{adminKey, ""}, http.StatusUnauthorized},
		{[]string{"", adminKey}, http.StatusUnauthorized},
		{[]string{"", ""}, http.StatusUnauthorized},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/v1/admin/status", nil)
		require.NoError(t, err)
		req.Header["X-Admin-Key"] = tt.keys
		resp, err := g.client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, tt.want, resp.StatusCode, tt.keys)
	}
}

// where no key is needed, a page of another site that has a browser send something must not have it done.
func TestOpenRoutesAreNotForOtherSites(t *testing.T) {
	t.Parallel()
	open := setup(t, func(c *ingress.Config) { c.Debug = true })
	questions := serve(t, open, "session-writer", map[string]string{"clear_logs": `{"status":"success"}`})
	for site, want := range map[string]int{
		"cross-site": http.StatusForbidden, "same-site": http.StatusForbidden, "something": http.StatusForbidden,
		"same-origin": http.StatusOK, "none": http.StatusOK, "": http.StatusOK,
	} {
		a := open.do(http.MethodPost, "/v1/admin/logs/clear", nil, "Sec-Fetch-Site", site, "Content-Type", "text/plain")
		require.Equal(t, want, a.StatusCode, site)
	}
	require.Len(t, questions, 3)
	closed := setup(t, withAdmin)
	serve(t, closed, "session-writer", map[string]string{"clear_logs": `{"status":"success"}`})
	a := closed.do(http.MethodPost, "/v1/admin/logs/clear", nil, "Sec-Fetch-Site", "cross-site", "X-Admin-Key", adminKey)
	require.Equal(t, http.StatusOK, a.StatusCode, "who has the key may come from anywhere")
}

// guessing is slowed down.
func TestAdminGuessing(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.AdminKey = adminKey })
	const burst, refill = 30, 2 * time.Second
	guess := func() answer { return g.do(http.MethodGet, "/v1/admin/status", nil, "X-Admin-Key", "guess") }
	begun := time.Now()
	a := guess()
	for ; a.StatusCode != http.StatusTooManyRequests; a = guess() {
		guesses := strings.Count(g.log.String(), "wrong admin key")
		require.LessOrEqual(t, guesses, burst+int(time.Since(begun)/refill))
	}
	requireError(t, a, http.StatusTooManyRequests)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	require.GreaterOrEqual(t, strings.Count(g.log.String(), "wrong admin key"), burst)
}

// serve answers queries with fixed texts.
func serve(t *testing.T, g *gateway, service string, answers map[string]string) <-chan string {
	t.Helper()
	questions := make(chan string, 16)
	handlers := query.Handlers{}
	for op, text := range answers {
		handlers[op] = func(_ context.Context, data []byte) ([]byte, error) {
			questions <- string(data)
			if text == "refuse" {
				return nil, fault.New(fault.NotFound, "no such thing")
			}
			if text == "" {
				return nil, errors.New("secret detail")
			}
			return []byte(text), nil
		}
	}
	g.answers(service, handlers)
	return questions
}

// ADMIN-03, ADMIN-04, R-339.
func TestAdminQueries(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.Debug = true })
	a := g.do(http.MethodGet, "/v1/admin/status", nil)
	message, _ := requireError(t, a, http.StatusServiceUnavailable)
	require.Contains(t, message, "dispatcher")

	questions := serve(t, g, "session-writer", map[string]string{"stats": `{"total_requests":1}`, "logs": `[]`, "calls": `[]`, "clear_logs": `{"status":"success"}`})
	require.Equal(t, `{"total_requests":1}`, g.do(http.MethodGet, "/v1/admin/stats", nil).body)
	<-questions
	for query, limit := range map[string]int{"": 50, "?limit=5": 5, "?limit=0": 1, "?limit=-3": 1, "?limit=5000": 1000, "?limit=99999999999999999999": 1000} {
		for _, path := range []string{"/v1/admin/logs", "/v1/admin/calls"} {
			a = g.do(http.MethodGet, path+query, nil)
			require.Equal(t, http.StatusOK, a.StatusCode, a.body)
			require.Equal(t, `[]`, a.body)
			var q struct{ Limit int }
			require.NoError(t, json.Unmarshal([]byte(<-questions), &q))
			require.Equal(t, limit, q.Limit, path+query)
		}
	}
	requireError(t, g.do(http.MethodGet, "/v1/admin/logs?limit=many", nil), http.StatusBadRequest)
	requireError(t, g.do(http.MethodGet, "/v1/admin/calls?limit=many", nil), http.StatusBadRequest)
	require.Equal(t, http.StatusOK, g.do(http.MethodPost, "/v1/admin/logs/clear", nil).StatusCode)
	requireError(t, g.do(http.MethodGet, "/v1/admin/logs/clear", nil), http.StatusMethodNotAllowed)
	requireError(t, g.do(http.MethodGet, "/v1/admin/unknown", nil), http.StatusNotFound)
}

func TestAdminQueriesThatFail(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.Debug = true })
	serve(t, g, "session-writer", map[string]string{"stats": "refuse", "logs": ""})
	message, _ := requireError(t, g.do(http.MethodGet, "/v1/admin/stats", nil), http.StatusNotFound)
	require.Equal(t, "no such thing", message)
	message, _ = requireError(t, g.do(http.MethodGet, "/v1/admin/logs", nil), http.StatusInternalServerError)
	require.Equal(t, "Internal server error", message)
}

// HDR-08, HDR-08b, HDR-08c.
func TestCORS(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) {
		c.ClientKeys, c.CORSOrigins = []string{clientKey}, []string{"https://other.example", origin}
	})
	preflight := []string{"Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,x-stainless-os"}
	a := g.do(http.MethodOptions, "/v1/chat/completions", nil, preflight...)
	require.Equal(t, http.StatusNoContent, a.StatusCode)
	require.Equal(t, origin, a.Header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "authorization,x-stainless-os", a.Header.Get("Access-Control-Allow-Headers"))
	require.Contains(t, a.Header.Get("Access-Control-Allow-Methods"), "POST")
	require.Equal(t, "Origin", a.Header.Get("Vary"))

	a = g.chat(chatBody, "Origin", origin, "Authorization", "Bearer wrong")
	requireError(t, a, http.StatusUnauthorized)
	require.Equal(t, origin, a.Header.Get("Access-Control-Allow-Origin"), "the page can read why")
	require.Contains(t, a.Header.Get("Access-Control-Expose-Headers"), "X-Request-Id")

	for _, evil := range []string{"https://evil.example", "https://app.example.evil", "null", strings.ToUpper(origin), origin + "/"} {
		for _, a := range []answer{
			g.do(http.MethodOptions, "/v1/chat/completions", nil, "Origin", evil, "Access-Control-Request-Method", "POST"),
			g.chat(chatBody, "Origin", evil),
		} {
			for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers"} {
				require.Empty(t, a.Header.Get(name), evil)
			}
		}
	}
	for _, path := range []string{"/v1", "/v1/", "/v1/models", "/v1/models/x", "/v1/unknown", "/v1/responses", "/v1/administrator"} {
		a := g.do(http.MethodOptions, path, nil, preflight...)
		require.Equal(t, http.StatusNoContent, a.StatusCode, path)
		require.Equal(t, origin, a.Header.Get("Access-Control-Allow-Origin"), path)
		require.Contains(t, a.Header.Get("Access-Control-Allow-Methods"), "POST")
	}
	require.Equal(t, http.StatusNoContent, g.do(http.MethodOptions, "/v1/models", nil).StatusCode, "without an origin it is a plain question")
}

// a page whose base URL ends in a slash can read why it is refused. Of what may be meant for the admin it reads nothing.
func TestPagesReadWhyAPathIsRefused(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.ClientKeys, c.CORSOrigins = []string{clientKey}, []string{origin} })
	ask := func(method, target string) answer {
		return exchange(t, g.addr, method+" "+target+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nOrigin: "+origin+
			"\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n\r\n", 1)[0]
	}
	for _, target := range []string{"/v1//chat/completions", "/v1/./models", "/v1/%6dodels", "http://x/v1//models"} {
		a := ask(http.MethodOptions, target)
		require.Equal(t, http.StatusNoContent, a.StatusCode, target)
		require.Equal(t, "authorization", a.Header.Get("Access-Control-Allow-Headers"), target)
		a = ask(http.MethodPost, target)
		_, code := requireError(t, a, http.StatusBadRequest)
		require.Equal(t, "invalid_path", code)
		require.Equal(t, origin, a.Header.Get("Access-Control-Allow-Origin"), target)
	}
	for _, target := range []string{"/v1//admin/status", "/v1/%61dmin/status", "/v1%2Fadmin/status", "/v1/models/../admin/status", "//v1/models", `/v1/x\y/../admin`} {
		for _, method := range []string{http.MethodOptions, http.MethodPost} {
			a := ask(method, target)
			require.Equal(t, http.StatusBadRequest, a.StatusCode, target)
			require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"), target)
		}
	}
}

// origins of any scheme, patterns of ports and hosts, the origin of pages that have none, and nothing that only looks alike.
func TestOriginPatterns(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) {
		c.CORSOrigins = []string{"null", "app://obsidian.md", "http://localhost:*", "https://[::1]:*", "vscode-webview://*", "https://app.example:8443"}
	})
	for o, want := range map[string]bool{
		"null": true, "app://obsidian.md": true, "http://localhost": true, "http://localhost:5173": true, "https://[::1]:1": true,
		"vscode-webview://1q2w3e": true, "https://app.example:8443": true,
		"NULL": false, "app://other": false, "http://localhost.evil.example": false, "http://localhost:80.evil.example": false, "http://localhost:": false,
		"http://localhost:x": false, "http://localhost:99999": false, "https://localhost:1": false, "http://localhosts:1": false, "vscode-webviews://x": false,
		"https://app.example": false, "https://app.example:84431": false, "*": false, "http://localhost:1/": false, "http://localhost@evil.example:1": false,
	} {
		a := g.do(http.MethodGet, "/v1/models", nil, "Origin", o)
		if want {
			require.Equal(t, o, a.Header.Get("Access-Control-Allow-Origin"))
		} else {
			require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"), o)
		}
	}
	a := g.do(http.MethodOptions, "/v1/chat/completions", nil, "Origin", "null", "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Private-Network", "true")
	require.Equal(t, "true", a.Header.Get("Access-Control-Allow-Private-Network"))
}

func TestCORSForAll(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.CORSOrigins = []string{"*"} })
	require.Equal(t, origin, g.do(http.MethodGet, "/v1/models", nil, "Origin", origin).Header.Get("Access-Control-Allow-Origin"))
	require.Empty(t, g.do(http.MethodGet, "/v1/models", nil).Header.Get("Access-Control-Allow-Origin"))
	require.Empty(t, setup(t, nil).do(http.MethodGet, "/v1/models", nil, "Origin", origin).Header.Get("Vary"), "off by default")
}

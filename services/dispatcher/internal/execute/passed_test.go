package execute_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// with sends headers before the answer of h.
func with(h handler, header map[string]string) handler {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		h(w, r, n)
	}
}

// the client of a model with one upstream gets what that says of limits, time and the call; where there are several, or a header that can't
// be passed, it does not.
func TestHeadersOfTheOnlyUpstream(t *testing.T) {
	t.Parallel()
	const limited = `{"error":{"message":"slow down","type":"rate_limit_error"}}`
	limits := map[string]string{
		"x-ratelimit-limit-requests": "100", "X-RateLimit-Remaining-Tokens": "5", "openai-processing-ms": "12", "x-request-id": "req_1", "Server": "x",
		"Set-Cookie": "a=b", "x-ratelimit-key": "key-of-a",
	}
	many := map[string]string{}
	for i := range 100 {
		many[fmt.Sprintf("X-Ratelimit-%d", i)] = "1"
	}
	for name, tc := range map[string]struct {
		a, b   handler // b = nil: there is one upstream
		body   string
		status int
		want   map[string]string
	}{
		"whole answer": {with(reply("hi"), limits), nil, plainBody, 200, map[string]string{
			"X-Ratelimit-Limit-Requests": "100", "X-Ratelimit-Remaining-Tokens": "5", "Openai-Processing-Ms": "12", "X-Upstream-Request-Id": "req_1",
			"X-Ratelimit-Key": "[key]", "Server": "", "Set-Cookie": "", "X-Request-Id": "",
		}},
		"stream":         {with(reply("hi"), limits), nil, streamBody, 200, map[string]string{"X-Ratelimit-Limit-Requests": "100", "X-Upstream-Request-Id": "req_1"}},
		"two upstreams":  {with(reply("hi"), limits), reply("hi"), plainBody, 200, map[string]string{"X-Ratelimit-Limit-Requests": "", "X-Upstream-Request-Id": ""}},
		"passed refusal": {with(status(400, `{"error":{"message":"bad value"}}`), limits), nil, plainBody, 400, map[string]string{"X-Upstream-Request-Id": "req_1"}},
		"the same wait": {with(status(429, limited), map[string]string{"Retry-After-Ms": "1500", "Retry-After": "2", "request-id": "r"}), nil, plainBody, 503, map[string]string{
			"Retry-After": "2", "Retry-After-Ms": "1500", "X-Upstream-Request-Id": "r",
		}},
		"milliseconds first": {with(status(429, limited), map[string]string{"Retry-After-Ms": "600", "Retry-After": "9"}), nil, plainBody, 503, map[string]string{"Retry-After": "1", "Retry-After-Ms": "600"}},
		"a very long wait":   {with(status(429, limited), map[string]string{"Retry-After-Ms": "86400000", "Retry-After": "86400"}), nil, plainBody, 503, map[string]string{"Retry-After": "", "Retry-After-Ms": ""}},
		"an odd wait":        {with(status(429, limited), map[string]string{"Retry-After-Ms": "soon", "Retry-After": "3"}), nil, plainBody, 503, map[string]string{"Retry-After": "3", "Retry-After-Ms": ""}},
		"odd values":         {with(reply("hi"), map[string]string{"x-ratelimit-a": strings.Repeat("x", 1000), "x-ratelimit-b": "", "x-request-id": "é"}), nil, plainBody, 200, map[string]string{"X-Ratelimit-A": "", "X-Upstream-Request-Id": ""}},
		"too many":           {with(reply("hi"), many), nil, plainBody, 200, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstreams := map[string]handler{"a": tc.a}
			if tc.b != nil {
				upstreams["b"] = tc.b
			}
			bubble(t, upstreams, func(w *world) {
				got, _ := w.run(w.t.Context(), tc.body)
				require.Equal(w.t, tc.status, got.head.Status)
				for name, want := range tc.want {
					require.Equal(w.t, want, got.header(name), name)
				}
				require.LessOrEqual(w.t, len(got.head.Header), 40)
			})
		})
	}
}

// of each call the ledger has the headers of the answer that are on a list, few of them and short, without keys; nothing else, whatever an upstream
// sends.
func TestHeadersOfCalls(t *testing.T) {
	t.Parallel()
	secret := map[string]string{
		"Set-Cookie": "session=1", "Authorization": "Bearer x", "X-Api-Key": "k", "Proxy-Authenticate": "Basic", "Www-Authenticate": "Bearer", "Openai-Organization": "org-1",
		"Openai-Project": "proj-1", "Anthropic-Organization-Id": "o", "X-Unknown": "1", "Location": "http://h/?key=k",
	}
	limited := map[string]string{
		"x-ratelimit-remaining-requests": "0", "anthropic-ratelimit-tokens-reset": "2026-01-01T00:00:00Z", "Retry-After": "7", "x-request-id": "req of key-of-a", "CF-Ray": "8a-FRA",
		"server": "cloudflare", "via": "",
	}
	many := map[string]string{"X-Request-Id": "r", "Server": strings.Repeat("x", 257), "Via": "1.1 h\x80", "X-Ratelimit-" + strings.Repeat("a", 60): "1"}
	for i := range 100 {
		many[fmt.Sprintf("X-Ratelimit-%d", i)] = strings.Repeat("9", i%50+1)
	}
	bubble(t, map[string]handler{
		"a": with(with(status(503, "{}"), secret), limited), "b": with(with(reply("hi"), secret), many),
	}, func(w *world) {
		got, out := w.run(w.t.Context(), plainBody)
		require.Equal(w.t, http.StatusOK, got.head.Status)
		require.Len(w.t, out.Usage.Attempts, 2)
		var first []string
		for _, kv := range out.Usage.Attempts[0].Headers {
			first = append(first, kv[0]+": "+kv[1])
		}
		require.Equal(w.t, []string{
			"Anthropic-Ratelimit-Tokens-Reset: 2026-01-01T00:00:00Z", "Cf-Ray: 8a-FRA", "Content-Type: application/json", "Retry-After: 7", "Server: cloudflare",
			"X-Ratelimit-Remaining-Requests: 0", "X-Request-Id: req of [key]",
		}, first)
		var rest []string
		limits, size := 0, 0
		for _, kv := range out.Usage.Attempts[1].Headers {
			size += len(kv[0]) + len(kv[1])
			if strings.HasPrefix(kv[0], "X-Ratelimit-") {
				limits++
			} else {
				rest = append(rest, kv[0])
			}
		}
		require.Equal(w.t, []string{"Content-Type", "X-Request-Id"}, rest)
		require.Equal(w.t, 24, limits)
		require.LessOrEqual(w.t, size, 2<<10)
	})
}

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

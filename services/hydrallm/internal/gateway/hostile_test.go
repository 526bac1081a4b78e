package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpguts"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

// evil is what an injection would add to a request or an answer.
const evil = "X-Evil"

// rawAsk sends a request as it is on a connection of its own and gives the answer, of which no line of the header may be somebody else's.
func (x running) rawAsk(t *testing.T, text string) (status int, header http.Header, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(x.url, "http://"))
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // only read
	require.NoError(t, conn.SetDeadline(time.Now().Add(testWait)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	raw, err := io.ReadAll(conn)
	require.NoError(t, err)
	head, _, ok := strings.Cut(string(raw), "\r\n\r\n")
	require.True(t, ok, "%q", raw)
	lines := strings.Split(head, "\r\n")
	seen := map[string]bool{}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ": ")
		require.True(t, ok, "%q", line)
		require.True(t, httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value), "%q", line)
		require.False(t, seen[name], "%q comes twice", name)
		require.NotContains(t, []string{evil, "Set-Cookie", "Keep-Alive", "Trailer", "Upgrade", "Proxy-Authenticate", "Www-Authenticate", "Location", "Link", "Access-Control-Allow-Origin"}, name)
		seen[name] = true
	}
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(raw))), nil)
	require.NoError(t, err)
	content, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, resp.Header, string(content)
}

// post is a request on a connection that ends with it.
func post(path, body string, header ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		path, len(body), strings.Join(append(header, ""), "\r\n"), body)
}

// what a client writes into names and headers ends up in no header of a call, of an answer or of a message as a line of its own.
func TestHeaderInjectionByClients(t *testing.T) {
	t.Parallel()
	x := &bundle{a: fakellm.Start(t), b: fakellm.Start(t)}
	x.a.Handle(fakellm.Talk("hi"))
	x.running = serve(t, configured(t, freeport.Port(t), fmt.Sprintf(`
providers:
  - {id: pa, url: "%s/v1", key: key-of-provider-a, session_header: X-Conversation}
upstreams:
  - {id: a, provider: pa, model: real-a}
models:
  - {name: m, upstreams: [a]}
routing: {final_fallback: "", aliases: {}}
`, x.a.URL())))
	for i, text := range []string{`\r\nX-Evil: 1`, `\nX-Evil: 1\n\n`, `\rX-Evil: 1`, `\u0000X-Evil`, `\u0085X-Evil`, `\u2028X-Evil`, `%0d%0aX-Evil: 1`, `é\r\nX-Evil: 1`} {
		messages := `"messages":[{"role":"user","content":"` + text + `"}]`
		for _, stream := range []string{"false", "true"} {
			x.rawAsk(t, post("/v1/chat/completions", `{"model":"m`+text+`","stream":`+stream+`,`+messages+`}`))
			x.rawAsk(t, post("/v1/chat/completions", `{"model":"m","session_id":"s`+text+`","stream":`+stream+`,`+messages+`}`))
			x.rawAsk(t, post("/v1/chat/completions", `{"model":"m","user":"u`+text+`","stream":`+stream+`,`+messages+`}`))
			x.rawAsk(t, post("/v1/messages", `{"model":"pa/real`+text+`","max_tokens":9,"stream":`+stream+`,`+messages+`}`))
			x.rawAsk(t, post("/v1/responses", `{"model":"m`+text+`","previous_response_id":"r`+text+`","stream":`+stream+`,"input":"hi"}`))
		}
		x.rawAsk(t, post("/v1/embeddings", `{"model":"m`+text+`","input":"hi"}`))
		x.rawAsk(t, post("/v1/moderations", `{"model":"m`+text+`","input":"hi"}`))
		x.rawAsk(t, "GET /v1/models/m%0d%0aX-Evil:%201 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		x.rawAsk(t, "GET /v1/responses/r%0d%0aX-Evil:%201 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		require.NotEmpty(t, x.a.Requests(), "%d", i)
	}
	// Headers: those named by Connection, and those of others, are nobody's on the other side.
	status, header, _ := x.rawAsk(t, post("/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		"Connection: x-evil, anthropic-beta", "X-Evil: 1", "Anthropic-Beta: b\t\xff", "Cookie: a=b", "Proxy-Authorization: Basic eA==", "Te: trailers",
		"X-Forwarded-For: 1.2.3.4", "Authorization: Bearer key-of-the-client", "X-Request-Id: a\tb", "Traceparent: 00-\t-1-1", "Tracestate: a=\xff",
		"X-Session-Id: s\tX-Evil", "Origin: http://evil.example"))
	require.Contains(t, []int{200, 400}, status)
	require.NotContains(t, header.Get("X-Request-Id"), "\t")
	for _, r := range x.a.Requests() {
		for name, values := range r.Header {
			require.NotContains(t, []string{evil, "Cookie", "Proxy-Authorization", "X-Forwarded-For", "Te", "Origin", "Anthropic-Beta", "X-Session-Id"}, name)
			for _, value := range values {
				require.True(t, httpguts.ValidHeaderFieldValue(value), "%s: %q", name, value)
				require.NotContains(t, value, "key-of-the-client")
				require.NotContains(t, value, "\u0085")
			}
		}
	}
}

// of what a provider answers only headers that are known to be good for something reach the client, and each as one line.
//
//nolint:paralleltest,tparallel // the cases tell one upstream what to answer
func TestHostileUpstreamHeaders(t *testing.T) {
	t.Parallel()
	x := start(t)
	const (
		whole = `{"id":"c","object":"chat.completion","created":1,"model":"real-a","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`
		event = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"real-a","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	)
	everything := []string{
		"Set-Cookie: a=b", "Connection: X-Request-Id", "Keep-Alive: timeout=5", "Trailer: X-Evil", "Upgrade: h2c", "Proxy-Authenticate: Basic", "Www-Authenticate: Basic",
		"Location: http://evil.example/", "Link: <x>; rel=preload", "Access-Control-Allow-Origin: *", "X-Gateway-Provider: other", "Server: x", "Date: x", "X-Evil: 1",
		"X-Request-Id: a\tb", "Retry-After: 3\t", "Openai-Processing-Ms: 1\xff", "X-Ratelimit-Limit-Requests: 1", "X-Ratelimit-Limit-Requests: 2", "X-RateLimit-Café: 1",
		"X-Ratelimit-" + strings.Repeat("a", 4096) + ": 1", "Content-Language: de",
	}
	lines := map[string]string{
		"everything":                   strings.Join(everything, "\r\n"),
		"bare CR":                      "X-Request-Id: a\rX-Evil: 1",
		"bare CR in a limit":           "X-Ratelimit-Limit-Requests: 1\rX-Evil: 1",
		"NUL":                          "X-Request-Id: a\x00X-Evil: 1",
		"control characters":           "Retry-After: 5\x0bX-Evil\r\nX-Ratelimit-Reset-Requests: \x1b[31m",
		"folded":                       "X-Request-Id: a\r\n X-Evil: 1",
		"folded without white space":   "X-Request-Id: a\n\tX-Evil: 1",
		"LF":                           "X-Request-Id: a\nX-Evil: 1",
		"space in a name":              "X-Ratelimit-a b: 1",
		"space before the colon":       "X-Ratelimit-A : 1",
		"colon in a name":              "X-Ratelimit-:a: 1",
		"name with a bracket":          "X-Ratelimit-(a): 1",
		"type over two lines":          "Content-Type: application/json\rX-Evil: 1",
		"type with a control":          "Content-Type: text/plain; a=\"\x01\"",
		"type that is a list":          "Content-Type: application/json, text/html",
		"two lengths":                  "Content-Length: 1\r\nContent-Length: 2",
		"length and chunks":            "Content-Length: 4",
		"another protocol":             "Upgrade: websocket\r\nConnection: Upgrade",
		"an encoding that is nonsense": "Content-Encoding: \x01gzip",
	}
	for name, header := range lines {
		for _, status := range []string{"200 OK", "101 Switching Protocols", "400 Bad Request", "429 Too Many Requests", "503 Service Unavailable", "200 OK\rX-Evil: 1", "400 \x00"} {
			t.Run(name+"/"+status, func(t *testing.T) {
				for path, body := range map[string]string{
					"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
					"/v1/messages":         `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`,
					"/v1/moderations":      `{"model":"m","input":"hi"}`,
				} {
					answer := whole
					if strings.Contains(body, "stream") {
						answer = event
					}
					kind := "Content-Type: application/json\r\n"
					if strings.Contains(header, "Content-Type") {
						kind = ""
					}
					x.a.Handle(func(fakellm.Request) fakellm.Answer {
						return fakellm.Answer{Raw: fmt.Appendf(nil, "HTTP/1.1 %s\r\n%s%s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nX-Evil: 1\r\n\r\n", status, kind, header, len(answer), answer)}
					})
					code, h, text := x.rawAsk(t, post(path, body))
					require.True(t, slices.Contains([]int{200, 400, 424, 429, 500, 502, 503, 504}, code), "%d %s", code, text)
					require.NotEmpty(t, h.Get("X-Request-Id"))
					require.NotEqual(t, "other", h.Get("X-Gateway-Provider"))
					require.NotContains(t, text, evil)
				}
			})
		}
	}
}

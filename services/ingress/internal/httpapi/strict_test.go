package httpapi

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"hydrallm/shared/contract"
)

// net/http reads each request that is let in with the same end, and the same of what decides who asks.
func FuzzStrict(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nX-Admin-Key: k\r\n\r\nabc",
		"POST http://h/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAuthorization:\tBearer a \r\n\r\n0\r\n\r\n", "GET / HTTP/1.0\r\n\r\nrest",
		"GET / HTTP/1.1\r\nHost: x\r\nX-Api-Key: a\r\n b\r\nX-Api-Key: c\r\n\r\n", "GET / HTTP/1.1\nHost: x\n\n\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nX Y: z\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\na",
		"\r\nPOST / HTTP/1.1\r\nHost: x\r\nConnection: close, X-Api-Key\r\nTrailer: A\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		own, other := bufio.NewReaderSize(bytes.NewReader(raw), readBuffer), bufio.NewReaderSize(bytes.NewReader(raw), readBuffer)
		var h fasthttp.RequestHeader
		if h.Read(own) != nil || strict(&h) != nil {
			return
		}
		r, err := http.ReadRequest(other)
		if err != nil {
			return // refused there
		}
		defer r.Body.Close() //nolint:errcheck // it holds nothing
		require.Equal(t, r.Method, string(h.Method()))
		require.Equal(t, r.RequestURI, string(h.RequestURI()))
		length := h.ContentLength()
		if length == -2 {
			length = 0 // there is none
		}
		require.Equal(t, r.ContentLength, int64(length))
		for _, name := range []string{"X-Admin-Key", "Authorization", "X-Api-Key", "X-Session-Id", "Content-Encoding", "Origin", "X-Forwarded-For"} {
			var values []string
			for _, value := range h.PeekAll(name) {
				values = append(values, string(value))
			}
			require.Equal(t, r.Header.Values(name), values, name)
		}
		rest, err := io.ReadAll(own)
		require.NoError(t, err)
		if length >= 0 { // the body of chunks is read by another reader
			body, err := io.ReadAll(r.Body)
			left, _ := io.ReadAll(other)
			if err == nil {
				require.Equal(t, string(rest), string(body)+string(left))
			}
		}
	})
}

// What is passed on of the headers of a client is printable and bounded, whatever they hold, and so is what is shown of them.
func FuzzClientHeaders(f *testing.F) {
	f.Add("req_1", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=b", "prompt-caching-2024-07-31", "http://localhost:3000")
	f.Add("a\tb", "00--", strings.Repeat("a", 600)+"=", strings.Repeat("b", maxForProvider), "http://localhost:80@evil.example")
	f.Fuzz(func(t *testing.T, id, parent, state, beta, origin string) {
		x := &exchange{RequestCtx: &fasthttp.RequestCtx{}, surface: contract.SurfaceMessages}
		h := &x.Request.Header
		h.Set("X-Request-Id", id)
		h.Set("Traceparent", parent)
		h.Set("Tracestate", state)
		h.Add("Anthropic-Beta", beta)
		h.Add("Anthropic-Beta", "x")
		h.Set("Origin", origin)
		x.begin()
		require.Regexp(t, `^[-\w.:/+=]{1,128}$`, string(x.Response.Header.Peek("X-Request-Id")))
		for _, kv := range x.forProvider() {
			require.LessOrEqual(t, len(kv[1]), maxForProvider)
			require.NotRegexp(t, `[^ -~]`, kv[1])
		}
		c := newCORS([]string{"http://localhost:*", "vscode-webview://*"})
		if c.allowed(origin) {
			require.Regexp(t, `(?s)^(http://localhost(:\d+)?$|vscode-webview://)`, origin)
		}
		c.mark(x.RequestCtx)
		require.NotContains(t, strings.TrimSuffix(x.Response.Header.String(), "\r\n\r\n"), "\r\n\r\n")
	})
}

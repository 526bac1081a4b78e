package ingress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// smuggled is a request that must not be seen as one: what stands before it ends otherwise for a proxy than for a server that is lenient.
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

// a request whose end, or whose header, others may read differently gets a 400, and nothing behind it on the connection is read.
func TestRequestSmuggling(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	g.work(echo)
	const line = "POST /v1/chat/completions HTTP/1.1\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n", len(chatBody))
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(chatBody), chatBody)
	const host, chunked = "Host: x\r\n", "Transfer-Encoding: chunked\r\n"
	plain := func(header string) string { return line + host + header + length + "\r\n" + chatBody }
	coded := func(header, body string) string { return line + host + header + "\r\n" + body }
	get := func(header string) string { return "GET /v1/models HTTP/1.1\r\n" + host + header + "\r\n" }

	for name, text := range map[string]string{
		"two lengths":                     plain("Content-Length: 3\r\n"),
		"two lengths, the same":           plain(length),
		"two lengths in a list":           coded(fmt.Sprintf("Content-Length: %d, %d\r\n", len(chatBody), len(chatBody)), chatBody),
		"length with a sign":              coded(fmt.Sprintf("Content-Length: +%d\r\n", len(chatBody)), chatBody),
		"length below zero":               coded("Content-Length: -1\r\n", chatBody),
		"length in hex":                   coded(fmt.Sprintf("Content-Length: 0x%x\r\n", len(chatBody)), chatBody),
		"length with a point":             coded(fmt.Sprintf("Content-Length: %d.0\r\n", len(chatBody)), chatBody),
		"length with a space in it":       coded("Content-Length: 1 1\r\n", chatBody),
		"empty length":                    coded("Content-Length:\r\n", chatBody),
		"length beyond every integer":     coded("Content-Length: 18446744073709551617\r\n", chatBody),
		"length and chunks":               plain(chunked),
		"chunks and length":               coded(chunked+length, chunks),
		"length and chunks, GET":          get("Content-Length: 5\r\n"+chunked) + "0\r\n\r\n",
		"space before the colon":          coded("Transfer-Encoding : chunked\r\n", chunks),
		"tab before the colon":            coded("Transfer-Encoding\t: chunked\r\n", chunks),
		"space in a name":                 plain("X Y: z\r\n"),
		"space before a name":             plain("X: y\r\n " + chunked),
		"line folding":                    plain("X: y\r\n z\r\n"),
		"line folding with a tab":         plain("X: y\r\n\tz\r\n"),
		"folded coding":                   coded("Transfer-Encoding:\r\n chunked\r\n", chunks),
		"first header begins with a tab":  line + "\t" + host + length + "\r\n" + chatBody,
		"coding twice":                    coded(chunked+chunked, chunks),
		"chunked and identity":            coded("Transfer-Encoding: chunked, identity\r\n", chunks),
		"identity":                        plain("Transfer-Encoding: identity\r\n"),
		"identity alone":                  coded("Transfer-Encoding: identity\r\n", ""),
		"identity, then chunked":          coded("Transfer-Encoding: identity\r\n"+chunked, chunks),
		"unknown coding":                  coded("Transfer-Encoding: xchunked\r\n", chunks),
		"quoted coding":                   coded("Transfer-Encoding: \"chunked\"\r\n", chunks),
		"gzip in chunks":                  coded("Transfer-Encoding: gzip, chunked\r\n", chunks),
		"empty coding":                    coded("Transfer-Encoding:\r\n", chunks),
		"coding with a vertical tab":      coded("Transfer-Encoding: \vchunked\r\n", chunks),
		"coding with a bare CR":           coded("Transfer-Encoding: chunked\r \r\n", chunks),
		"coding of HTTP/1.0":              strings.Replace(coded(chunked, chunks), "1.1", "1.0", 1),
		"line that ends in LF":            plain("X: y\n"),
		"header that ends in LF":          line + host + length + "\n" + chatBody,
		"header that ends in LF, later":   get("X: y\r\n\n"),
		"bare CR in a value":              plain("X: a\rb\r\n"),
		"bare CR in a name":               plain("X\rY: b\r\n"),
		"NUL in a value":                  plain("X: a\x00b\r\n"),
		"NUL in a name":                   plain("X\x00: b\r\n"),
		"control character in a value":    plain("X: a\x1bb\r\n"),
		"no name":                         plain(": b\r\n"),
		"no colon":                        plain("Xb\r\n"),
		"name with a bracket":             plain("X(y): b\r\n"),
		"name that is not ASCII":          plain("X\xff: b\r\n"),
		"two hosts":                       plain("Host: y\r\n"),
		"no host":                         line + length + "\r\n" + chatBody,
		"space in the target":             "GET /v1/models /x HTTP/1.1\r\n" + host + "\r\n",
		"NUL in the target":               "GET /v1/models\x00 HTTP/1.1\r\n" + host + "\r\n",
		"two spaces behind the method":    "GET  /v1/models HTTP/1.1\r\n" + host + "\r\n",
		"tab behind the method":           "GET\t/v1/models HTTP/1.1\r\n" + host + "\r\n",
		"method with a bracket":           "G(T /v1/models HTTP/1.1\r\n" + host + "\r\n",
		"version of the future":           "GET /v1/models HTTP/2.0\r\n" + host + "\r\n",
		"version 1.9":                     "GET /v1/models HTTP/1.9\r\n" + host + "\r\n",
		"version in small letters":        "GET /v1/models http/1.1\r\n" + host + "\r\n",
		"version of one figure":           "GET /v1/models HTTP/1\r\n" + host + "\r\n",
		"chunk size with a sign":          coded(chunked, "+"+chunks),
		"chunk size with 0x":              coded(chunked, "0x"+chunks),
		"chunk size beyond every integer": coded(chunked, "fffffffffffffffff\r\n"+chatBody+"\r\n0\r\n\r\n"),
		"chunk size below zero":           coded(chunked, "8000000000000000\r\n"+chatBody+"\r\n0\r\n\r\n"),
		"chunk size that ends in LF":      coded(chunked, strings.Replace(chunks, "\r\n", "\n", 1)),
		"chunk size with a space in it":   coded(chunked, "1 1\r\n"+chatBody),
		"no chunk size":                   coded(chunked, ";x\r\n"+chunks),
		"chunk extension with LF":         coded(chunked, strings.Replace(chunks, "\r\n", ";a\nb\r\n", 1)),
		"chunk extension with CR":         coded(chunked, strings.Replace(chunks, "\r\n", ";a\rb\r\n", 1)),
		"chunk longer than it says":       coded(chunked, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(chatBody)-2, chatBody)),
		"chunk shorter than it says":      coded(chunked, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(chatBody)+1, chatBody)),
		"chunk that ends in LF":           coded(chunked, fmt.Sprintf("%x\r\n%s\n0\r\n\r\n", len(chatBody), chatBody)),
		"forbidden trailer":               coded(chunked, strings.TrimSuffix(chunks, "\r\n")+"Content-Length: 3\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, g.addr)
			_, err := io.WriteString(conn, text+smuggled)
			require.NoError(t, err)
			in := bufio.NewReader(conn)
			a, err := readAnswer(in)
			require.NoError(t, err)
			requireError(t, a, http.StatusBadRequest)
			require.True(t, a.Close, "the client is told")
			rest, err := io.ReadAll(in)
			require.NoError(t, err)
			require.Empty(t, string(rest), "the connection ends with the answer")
		})
	}
}

// a body is a body for every method and route, also where nobody reads it, and the request behind it is found.
func TestBodiesAreNoRequests(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	g.work(echo)
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(smuggled), smuggled)
	chunks := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x;a=\"b\"\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)
	for _, line := range []string{
		"GET /healthz", "GET /v1/models", "HEAD /healthz", "POST /healthz", "DELETE /v1/models", "OPTIONS /v1/chat/completions", "GET /ui", "GET /ui/app.js",
		"GET /openapi.json", "GET /v1/admin/status", "POST /v1/chat/completions", "PUT /nothing", "GET /v1//models", "POST /v1/embeddings", "BREW /",
	} {
		for _, body := range []string{length, chunks} {
			t.Run(line, func(t *testing.T) {
				t.Parallel()
				conn := dial(t, g.addr)
				_, err := io.WriteString(conn, line+" HTTP/1.1\r\nHost: x\r\n"+body+"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				require.NoError(t, err)
				raw, err := io.ReadAll(conn)
				require.NoError(t, err)
				require.NotContains(t, string(raw), "/smuggled")
				if answers := strings.Count(string(raw), "HTTP/1.1 "); answers > 1 {
					require.Equal(t, 2, answers)
					require.Contains(t, string(raw), "GET /last does not exist")
				}
			})
		}
	}
}

// what stands behind the last chunk counts for nothing: no key, no session, no address.
func TestTrailersAreIgnored(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	works := make(chan *contract.Request, 1)
	g.work(func(ctx context.Context, r *reply) {
		works <- r.work.Request
		echo(ctx, r)
	})
	conn := dial(t, g.addr)
	_, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Session-Id\r\n\r\n%x\r\n%s\r\n0\r\n"+
		"X-Session-Id: s\r\nX-Api-Key: k\r\nAnthropic-Beta: b\r\nX-Request-Id: r\r\n\r\nGET /last HTTP/1.1\r\nHost: x\r\n\r\n", len(chatBody), chatBody)
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	a, err := readAnswer(in)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.NotEqual(t, "r", a.Header.Get("X-Request-Id"))
	req := <-works
	require.Empty(t, req.SessionID)
	require.Empty(t, req.Headers)
	a, err = readAnswer(in)
	require.NoError(t, err)
	require.Contains(t, a.body, "GET /last does not exist")
}

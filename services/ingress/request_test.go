package ingress_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
)

// requireError checks the envelope of R-044.
func requireError(t *testing.T, a answer, status int) (message, code string) {
	t.Helper()
	require.Equal(t, status, a.StatusCode, a.body)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.NotEmpty(t, a.Header.Get("X-Request-Id"))
	var envelope struct {
		Error  map[string]any
		Detail string
	}
	require.NoError(t, json.Unmarshal([]byte(a.body), &envelope), a.body)
	for _, key := range []string{"message", "type", "param", "code"} {
		require.Contains(t, envelope.Error, key)
	}
	require.NotEmpty(t, envelope.Detail)
	require.Equal(t, envelope.Detail, envelope.Error["message"])
	code, _ = envelope.Error["code"].(string)
	return envelope.Detail, code
}

func wrap(content string) string {
	return `{"model":"m","messages":[{"role":"user","content":"` + content + `"}]}`
}

// REQ-07, REQ-12, R-026, R-031: none of these reaches the pipeline.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	g := setup(t, nil) // no worker: what is accepted would never be answered
	tests := map[string]string{
		"empty":                     "",
		"white space":               " \n",
		"broken":                    "{broken",
		"cut":                       chatBody[:len(chatBody)-2],
		"more behind it":            chatBody + "}",
		"array":                     "[]",
		"string":                    `"hi"`,
		"null":                      "null",
		"empty object":              "{}",
		"model is a number":         `{"model":5,"messages":[{"role":"user","content":"hi"}]}`,
		"stream is a string":        `{"model":"m","stream":"yes","messages":[{"role":"user","content":"hi"}]}`,
		"messages is a string":      `{"model":"m","messages":"hi"}`,
		"messages is an object":     `{"model":"m","messages":{}}`,
		"no messages":               `{"model":"m"}`,
		"empty messages":            `{"model":"m","messages":[]}`,
		"blank prompt":              `{"model":"m","prompt":"  "}`,
		"prompt is a number":        `{"model":"m","prompt":1}`,
		"empty last user message":   wrap(""),
		"duplicate model":           `{"model":"m","model":"other","messages":[{"role":"user","content":"hi"}]}`,
		"duplicate model, escaped":  `{"model":"m","mod\u0065l":"other","messages":[{"role":"user","content":"hi"}]}`,
		"duplicate stream":          `{"model":"m","stream":false,"messages":[{"role":"user","content":"hi"}],"stream":true}`,
		"invalid UTF-8":             wrap("a\xff\xfeb"),
		"invalid UTF-8 in a name":   "{\"model\":\"m\",\"x\xff\":1,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
		"control character":         wrap("a\x01b"),
		"very deep":                 `{"model":"m","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `,"messages":[{"role":"user","content":"hi"}]}`,
		"very long model name":      `{"model":"` + strings.Repeat("m", 100_000) + `","messages":[{"role":"user","content":"hi"}]}`,
		"very long session id":      `{"session_id":"` + strings.Repeat("s", 100_000) + `","messages":[{"role":"user","content":"hi"}]}`,
		"session id is a number":    `{"session_id":1,"messages":[{"role":"user","content":"hi"}]}`,
		"stream_options is a list":  `{"model":"m","stream_options":[],"messages":[{"role":"user","content":"hi"}]}`,
		"include_usage is a string": `{"model":"m","stream_options":{"include_usage":"x"},"messages":[{"role":"user","content":"hi"}]}`,
		"form":                      "model=m&messages=hi",
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireError(t, g.chat(body), http.StatusBadRequest)
			requireError(t, g.do(http.MethodPost, "/v1/chat/completions", io.MultiReader(strings.NewReader(body))), http.StatusBadRequest) // chunked
		})
	}
}

// URL-01, URL-05.
func TestRoutes(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	g.work(echo)
	tests := map[string]struct {
		method, path string
		status       int
		has          string
	}{
		"banner":                {http.MethodGet, "/", 200, `"status":"online"`},
		"alive":                 {http.MethodGet, "/healthz", 200, "ok"},
		"metrics":               {http.MethodGet, "/metrics", 200, "hydrallm_ingress_in_flight "},
		"unknown":               {http.MethodGet, "/nothing", 404, "GET /nothing does not exist"},
		"unknown below v1":      {http.MethodDelete, "/v1/no/such/route", 404, "DELETE /v1/no/such/route does not exist"},
		"base without v1":       {http.MethodPost, "/chat/completions", 404, "lacks /v1"},
		"base with v1 twice":    {http.MethodPost, "/v1/v1/chat/completions", 404, "/v1 twice"},
		"v1 itself":             {http.MethodGet, "/v1", 200, `"status":"online"`},
		"v1 with a slash":       {http.MethodGet, "/v1/", 200, `"status":"online"`},
		"v1, wrong method":      {http.MethodPost, "/v1", 405, "use GET"},
		"responses":             {http.MethodPost, "/v1/responses", 400, "input"},
		"responses, not built":  {http.MethodPost, "/v1/responses/compact", 404, "POST /v1/responses/compact does not exist"},
		"response, wrong":       {http.MethodPost, "/v1/responses/resp_1", 405, "use GET, HEAD, DELETE"},
		"messages":              {http.MethodPost, "/v1/messages?beta=true", 200, answerJSON},
		"chat, trailing slash":  {http.MethodPost, "/v1/chat/completions/", 200, answerJSON},
		"chat, double slash":    {http.MethodPost, "/v1//chat/completions", 400, "invalid_path"},
		"chat, with a query":    {http.MethodPost, "/v1/chat/completions?x=1", 200, answerJSON},
		"chat, other case":      {http.MethodPost, "/v1/Chat/Completions", 404, ""},
		"chat, below":           {http.MethodPost, "/v1/chat/completions/x", 404, ""},
		"wrong method":          {http.MethodGet, "/v1/chat/completions", 405, "use POST"},
		"wrong method, put":     {http.MethodPut, "/v1/chat/completions", 405, "use POST"},
		"wrong method, made up": {"BREW", "/v1/chat/completions", 405, "use POST"},
		"models, wrong method":  {http.MethodDelete, "/v1/models", 405, "use GET"},
		"banner, wrong method":  {http.MethodPost, "/", 405, "use GET"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := g.do(tt.method, tt.path, strings.NewReader(chatBody))
			require.Contains(t, a.body, tt.has)
			if tt.status == 405 {
				require.NotEmpty(t, a.Header.Get("Allow"))
			}
			if tt.status >= 400 {
				requireError(t, a, tt.status)
			}
			require.Equal(t, tt.status, a.StatusCode)
		})
	}
	var banner map[string]any
	require.NoError(t, json.Unmarshal([]byte(g.do(http.MethodGet, "/", nil).body), &banner))
	for _, key := range []string{"status", "message", "docs", "openapi", "ui"} {
		require.Contains(t, banner, key)
	}
}

func TestHeadHasNoBody(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	for _, path := range []string{"/", "/v1", "/healthz", "/v1/models", "/metrics"} {
		a := g.do(http.MethodHead, path, nil)
		require.Equal(t, http.StatusOK, a.StatusCode, path)
		require.Empty(t, a.body)
		require.Positive(t, a.ContentLength)
	}
}

// URL-03, URL-04, R-046, R-048, R-050.
func TestModels(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) {
		c.Models = []ingress.Model{{ID: "m", OwnedBy: "x"}, {ID: "prov/ns/name:tag"}, {ID: "m", OwnedBy: "second"}, {ID: "a b%c"}, {ID: "한국"}}
	})
	var list struct {
		Object string
		Data   []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(g.do(http.MethodGet, "/v1/models", nil).body), &list))
	require.Equal(t, "list", list.Object)
	require.Len(t, list.Data, 4)
	for _, key := range []string{"id", "object", "created", "owned_by", "display_name", "tier", "description", "capabilities"} {
		require.Contains(t, list.Data[0], key)
	}
	require.Equal(t, "x", list.Data[0]["owned_by"])
	for path, id := range map[string]string{
		"m": "m", "prov/ns/name:tag": "prov/ns/name:tag", "prov%2Fns%2Fname%3Atag": "prov/ns/name:tag", "a%20b%25c": "a b%c",
		"%ED%95%9C%EA%B5%AD": "한국",
	} {
		a := g.do(http.MethodGet, "/v1/models/"+path, nil)
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(a.body), &m))
		require.Equal(t, id, m["id"])
	}
	require.Contains(t, g.do(http.MethodGet, "/v1/models/", nil).body, `"object":"list"`, "an empty id is the list")
	for _, path := range []string{"prov/ns/other:tag", "x", "unknown"} {
		a := g.do(http.MethodGet, "/v1/models/"+path, nil)
		_, code := requireError(t, a, http.StatusNotFound)
		require.Equal(t, "model_not_found", code)
		require.Contains(t, a.body, `"param":"model"`)
	}
}

// what a proxy in front would take for another route is refused before anything else, also in the form of a whole address.
func TestPathsAreNotNormalised(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.ClientKeys, c.AdminKey = []string{clientKey}, adminKey })
	for _, target := range []string{
		"/v1/models/../admin/status", "/v1/models/%2e%2e/admin/status", "/v1/models/..%2Fadmin/status", "/v1//models", "//v1/models",
		"/v1/%61dmin/status", "/v1%2Fadmin/status", "http://x/v1/models/../admin/status", "x://y/v1/admin/status",
		"/v1/./models", "/v1/models/.", `/v1\admin/status`, "/v1/admin/%2e/status",
	} {
		text := "GET " + target + " HTTP/1.1\r\nHost: x\r\nX-Admin-Key: " + adminKey + "\r\nAuthorization: Bearer " + clientKey + "\r\n\r\n"
		_, code := requireError(t, exchange(t, g.addr, text, 1)[0], http.StatusBadRequest)
		require.Equal(t, "invalid_path", code, target)
	}
	whole := "GET http://other.example/v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + clientKey + "\r\n\r\n"
	require.Equal(t, http.StatusOK, exchange(t, g.addr, whole, 1)[0].StatusCode, "RFC 9112, section 3.2.2")
}

// a byte order mark at the beginning of a body is not part of it, packed or not; anywhere else it is no JSON.
func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	bodies := make(chan string, 1)
	g.work(func(ctx context.Context, r *reply) {
		bodies <- string(r.work.Body)
		echo(ctx, r)
	})
	const mark = "\xef\xbb\xbf"
	require.Equal(t, http.StatusOK, g.chat(mark+chatBody).StatusCode)
	require.Equal(t, chatBody, <-bodies)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, mark+chatBody)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Equal(t, http.StatusOK, g.chat(packed.String(), "Content-Encoding", "gzip").StatusCode)
	require.Equal(t, chatBody, <-bodies)
	for _, body := range []string{mark + mark + chatBody, " " + mark + chatBody, chatBody + mark, mark, mark[:2] + chatBody} {
		requireError(t, g.chat(body), http.StatusBadRequest)
	}
}

const testLimit = 64 << 10

// REQ-09b, HDR-03, HDR-03d: a body above the limit gets an answer that names the limit, in every framing and encoding.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.MaxBody = testLimit })
	g.work(echo)
	packed := func(body string) string {
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		_, err := io.WriteString(w, body)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return buf.String()
	}
	exact := wrap(strings.Repeat("a", testLimit-len(wrap(""))))
	require.Len(t, exact, testLimit)
	tests := map[string]struct {
		body    string
		status  int
		chunked bool
		header  []string
	}{
		"exactly the limit":            {exact, 200, false, nil},
		"exactly the limit, chunked":   {exact, 200, true, nil},
		"exactly the limit, packed":    {packed(exact), 200, false, []string{"Content-Encoding", "gzip"}},
		"a byte more":                  {exact + " ", 413, false, nil},
		"a byte more, chunked":         {exact + " ", 413, true, nil},
		"a byte more, packed":          {packed(exact + " "), 413, false, []string{"Content-Encoding", "gzip"}},
		"a byte more, packed, chunked": {packed(exact + " "), 413, true, []string{"Content-Encoding", "gzip"}},
		"far more":                     {strings.Repeat("x", 8<<20), 413, false, nil},
		"far more, chunked":            {strings.Repeat("x", 8<<20), 413, true, nil},
		"bomb":                         {packed(strings.Repeat("0", 64<<20)), 413, false, []string{"Content-Encoding", "gzip"}},
		"encoding in capitals":         {packed(chatBody), 200, false, []string{"Content-Encoding", "GZIP"}},
		"identity":                     {chatBody, 200, false, []string{"Content-Encoding", "identity"}},
		"unknown encoding":             {chatBody, 415, false, []string{"Content-Encoding", "foo"}},
		"two encodings":                {chatBody, 415, false, []string{"Content-Encoding", "gzip, zstd"}},
		"not what it says":             {chatBody, 400, false, []string{"Content-Encoding", "gzip"}},
		"not what it says, large":      {exact, 400, true, []string{"Content-Encoding", "zstd"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body io.Reader = strings.NewReader(tt.body)
			if tt.chunked {
				body = io.MultiReader(body)
			}
			a := g.do(http.MethodPost, "/v1/chat/completions", body, tt.header...)
			if tt.status == 200 {
				require.Equal(t, http.StatusOK, a.StatusCode, a.body)
				return
			}
			message, _ := requireError(t, a, tt.status)
			if tt.status == 413 {
				require.Contains(t, message, strconv.Itoa(testLimit))
			}
		})
	}
}

// A client that sends on after it was refused can still read why: the connection is not reset under it.
func TestRefusedUploadCanBeRead(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) {
		c.MaxBody = testLimit
		c.ClientKeys = []string{"key"}
	})
	tests := map[string]struct {
		head   string
		status int
	}{
		"too large":          {"Authorization: Bearer key\r\nContent-Length: 33554432\r\n", 413},
		"too large, chunked": {"Authorization: Bearer key\r\nTransfer-Encoding: chunked\r\n", 413},
		"no key":             {"Content-Length: 33554432\r\n", 401},
		"no key, chunked":    {"Transfer-Encoding: chunked\r\n", 401},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, g.addr)
			_, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n%s\r\n", tt.head)
			require.NoError(t, err)
			chunk := strings.Repeat("x", 64<<10)
			if strings.Contains(tt.head, "chunked") {
				chunk = fmt.Sprintf("%x\r\n%s\r\n", len(chunk), chunk)
			}
			for range 512 { // 32 MiB without looking at the answer
				_, err := io.WriteString(conn, chunk)
				require.NoError(t, err, "the gateway must go on reading")
			}
			a, err := readAnswer(bufio.NewReader(conn))
			require.NoError(t, err)
			requireError(t, a, tt.status)
			require.True(t, a.Close)
			_, err = conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

func dial(tb testing.TB, addr string) *net.TCPConn {
	tb.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	require.NoError(tb, conn.SetDeadline(time.Now().Add(testWait)))
	return conn.(*net.TCPConn) //nolint:forcetypeassert // it was dialled
}

// exchange sends text and reads the answers to n requests.
func exchange(t *testing.T, addr, text string, n int) []answer {
	t.Helper()
	conn := dial(t, addr)
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	var list []answer
	for range n {
		a, err := readAnswer(in)
		require.NoError(t, err)
		list = append(list, a)
	}
	return list
}

func TestBadHTTP(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	tests := map[string]struct {
		text   string
		status int
	}{
		"garbage":                     {"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400},
		"no version":                  {"GET /\r\n\r\n", 400},
		"other protocol":              {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
		"oversized header":            {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n", 431},
		"oversized path":              {"GET /" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"many headers":                {"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 20_000) + "\r\n", 431},
		"header without a colon":      {"GET / HTTP/1.1\r\nHost: x\r\nbroken\r\n\r\n", 400},
		"negative length":             {"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400},
		"two lengths":                 {"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
		"broken chunk":                {"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		"length and chunks":           {"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"length beyond every integer": {"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := exchange(t, g.addr, tt.text, 1)[0]
			requireError(t, a, tt.status)
			require.NotContains(t, a.body, "xxx", "nothing of the request is shown")
		})
	}
	require.Equal(t, http.StatusOK, g.do(http.MethodGet, "/healthz", nil).StatusCode)
}

func rawChat(header, body string) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n%s", len(body), header, body)
}

// A connection is used again after answers of all kinds, and several requests may be under way on it.
func TestKeepAliveAndPipelining(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.ClientKeys = []string{"key"} })
	g.work(echo)
	const key = "Authorization: Bearer key\r\n"
	text := rawChat(key, chatBody) + rawChat("", chatBody) + rawChat(key, "{broken") + rawChat(key, streamBody) +
		"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n" + rawChat(key+"Content-Encoding: foo\r\n", chatBody) + rawChat(key, chatBody) +
		"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"
	want := []int{200, 401, 400, 200, 404, 415, 200}
	for i, a := range exchange(t, g.addr, text, len(want)) {
		require.Equal(t, want[i], a.StatusCode, "%d: %s", i, a.body)
		if a.StatusCode == 200 {
			require.Contains(t, []string{answerJSON, "data: one\n\ndata: two\n\ndata: [DONE]\n\n"}, a.body)
		}
	}
}

// HDR-07.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	g.work(echo)
	conn := dial(t, g.addr)
	_, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(chatBody))
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", line)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	_, err = io.WriteString(conn, chatBody)
	require.NoError(t, err)
	a, err := readAnswer(in)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.StatusCode)
}

// the id goes back to the client; a strange one is not repeated.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		given string
		kept  bool
	}{
		"none":            {"", false},
		"a usual one":     {"req_0123-4567", true},
		"a UUID":          {"0190f3f2-5c1e-7d8a-b9a0-1f2e3d4c5b6a", true},
		"with a space":    {"a b", false},
		"with a quote":    {`a"b`, false},
		"not ASCII":       {"ä", false},
		"too long":        {strings.Repeat("a", 129), false},
		"as long as fits": {strings.Repeat("a", 128), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := setup(t, nil)
			rids := make(chan string, 1)
			g.work(noting(rids))
			var header []string
			if tt.given != "" {
				header = []string{"X-Request-ID", tt.given}
			}
			a := g.chat(chatBody, header...)
			require.Equal(t, http.StatusOK, a.StatusCode)
			rid := <-rids
			require.Regexp(t, `^[0-9a-v]{26}$`, rid, "one token of a subject")
			if tt.kept {
				require.Equal(t, tt.given, a.Header.Get("X-Request-Id"))
				require.Equal(t, rid, a.Header.Get("X-Gateway-Request-Id"))
			} else {
				require.Equal(t, rid, a.Header.Get("X-Request-Id"))
			}
		})
	}
}

// A client that leaves in the middle of its upload costs nothing and disturbs nobody.
func TestAbortedUpload(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	seen := make(chan string, 4)
	g.work(noting(seen))
	for _, framing := range []string{"Content-Length: 1000", "Transfer-Encoding: chunked"} {
		conn := dial(t, g.addr)
		_, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n39\r\n%s", framing, chatBody)
		require.NoError(t, err)
		require.NoError(t, conn.CloseWrite())
		a, err := readAnswer(bufio.NewReader(conn))
		if err == nil { // whoever still listens is told
			require.Equal(t, http.StatusBadRequest, a.StatusCode)
		} else {
			require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), err)
		}
	}
	require.Equal(t, http.StatusOK, g.chat(chatBody).StatusCode)
	require.Len(t, seen, 1, "no half request reached the pipeline")
}

package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/guard/guardtest"
	"hydrallm/services/enricher/internal/guard/proxy"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func start(t *testing.T, g *guard.Guard) *proxy.Proxy {
	t.Helper()
	p, err := proxy.StartSmall(t.Context(), g, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop(context.Background())) })
	return p
}

// client makes one that goes through p, as a browser does, and follows redirects.
func client(t *testing.T, p *proxy.Proxy) *http.Client {
	t.Helper()
	name, password := p.Credentials()
	transport := &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: "http", Host: p.Addr(), User: url.UserPassword(name, password)}),
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // G402: what a browser would refuse is asked for all the same
		DisableCompression: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func get(t *testing.T, c *http.Client, address string) (status int, body string, err error) {
	t.Helper()
	return ask(t, c, http.MethodGet, address, nil)
}

func ask(t *testing.T, c *http.Client, method, address string, with io.Reader) (status int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, with)
	if err != nil {
		return 0, "", err
	}
	answer, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// said is an answer without its body.
type said struct {
	status int
	header http.Header
}

// say sends a text over a connection of its own.
func say(t *testing.T, p *proxy.Proxy, text string) said {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err, text)
	_ = answer.Body.Close()
	return said{answer.StatusCode, answer.Header}
}

func authorization(p *proxy.Proxy) string {
	name, password := p.Credentials()
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password)) + "\r\n"
}

// whatever is asked for and however, no address leads inside.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	w := guardtest.New(t)
	p := start(t, w.Guard())
	for _, raw := range w.Addresses() {
		if strings.ContainsAny(raw, " \r\n\t") || raw == "" {
			continue // no address of a request line
		}
		status := say(t, p, "GET "+raw+" HTTP/1.1\r\nHost: page.example.com\r\n"+authorization(p)+"\r\n").status
		require.Contains(t, []int{http.StatusBadRequest, http.StatusForbidden}, status, raw)
		_, rest, ok := strings.Cut(raw, "//")
		if host, _, _ := strings.Cut(rest, "/"); ok && host != "" {
			status := say(t, p, "CONNECT "+host+" HTTP/1.1\r\nHost: page.example.com\r\n"+authorization(p)+"\r\n").status
			require.Contains(t, []int{http.StatusBadRequest, http.StatusForbidden}, status, host)
		}
	}
	require.Empty(t, w.Reached())
}

// neither redirects nor answers of DNS lead inside.
func TestHostileSetups(t *testing.T) {
	t.Parallel()
	for _, s := range guardtest.Setups() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			w := guardtest.New(t)
			status, body, err := get(t, client(t, start(t, w.Guard())), s.Start(w))
			require.Empty(t, w.Reached())
			require.NotContains(t, body, guardtest.TrapText)
			if s.Readable {
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, status)
				require.Contains(t, body, guardtest.PageText)
			}
		})
	}
}

// who has no credentials, or wrong ones, gets nothing.
func TestCredentials(t *testing.T) {
	t.Parallel()
	w := guardtest.New(t)
	p, other := start(t, w.Guard()), start(t, w.Guard())
	_, password := p.Credentials()
	_, another := other.Credentials()
	require.NotEqual(t, password, another)
	require.GreaterOrEqual(t, len(password), 26) // 128 bits
	for _, given := range []string{
		"", "Proxy-Authorization: \r\n", "Proxy-Authorization: Basic\r\n", "Proxy-Authorization: Basic YTpi\r\n", "Proxy-Authorization: Bearer " + password + "\r\n",
		authorization(other), strings.Replace(authorization(p), "Proxy-", "", 1),
	} {
		for _, line := range []string{"GET http://page.example.com/", "CONNECT page.example.com:443", "GET /", "OPTIONS *", "POST http://127.0.0.1:" + w.TrapPort() + "/"} {
			answer := say(t, p, line+" HTTP/1.1\r\nHost: page.example.com\r\n"+given+"\r\n")
			require.Equal(t, http.StatusProxyAuthRequired, answer.status, given)
			require.Equal(t, `Basic realm="hydrallm"`, answer.header.Get("Proxy-Authenticate"))
		}
	}
	require.Equal(t, http.StatusOK, say(t, p, "GET http://page.example.com/ HTTP/1.1\r\nHost: x\r\n"+authorization(p)+"\r\n").status)
	require.Zero(t, w.Lookups("x"))
	require.Equal(t, 1, w.Lookups(guardtest.Host))
}

// only http in plain requests, only TLS in tunnels.
func TestOtherProtocols(t *testing.T) {
	t.Parallel()
	w := guardtest.New(t)
	p := start(t, w.Guard())
	for _, head := range []string{
		"GET / HTTP/1.1\r\n", "GET ws://page.example.com/ HTTP/1.1\r\n", "GET ftp://page.example.com/ HTTP/1.1\r\n", "GET https://page.example.com/ HTTP/1.1\r\n",
		"GET http://u:p@page.example.com/ HTTP/1.1\r\n", "GET http://page.example.com/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
	} {
		require.Equal(t, http.StatusForbidden, say(t, p, head+"Host: page.example.com\r\n"+authorization(p)+"\r\n").status, head)
	}
	require.Zero(t, w.Lookups(guardtest.Host))

	got := make(chan []byte, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		text, _ := io.ReadAll(c)
		_ = c.Close()
		got <- text
	})
	defer serving.Wait()
	defer func() { _ = l.Close() }()
	p = start(t, guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}}))
	conn, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\n%s\r\nGET / HTTP/1.1\r\n\r\n", l.Addr(), authorization(p)+"Host: x\r\n")
	require.NoError(t, err)
	all, _ := io.ReadAll(conn)
	require.Equal(t, "HTTP/1.1 200 Connection established\r\n\r\n", string(all))
	require.Empty(t, <-got)
}

// A page with TLS, and one without, come through as they are.
func TestPassesOn(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		rw.Header().Set("X-Seen", fmt.Sprint(r.Host, r.Header["Proxy-Authorization"], r.Header["Proxy-Connection"], r.Header["X-Hop"], r.Header["X-Forwarded-For"]))
		rw.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(rw, r.Method+" "+r.URL.String()+" "+string(text)) //nolint:gosec // G705: the client is the test
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	p := start(t, guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}}))
	c := client(t, p)
	for _, server := range []*httptest.Server{plain, secure, plain, secure} {
		status, body, err := get(t, c, server.URL+"/a%20b?c=d")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "GET /a%20b?c=d ", body)
	}
	_, text, err := ask(t, c, http.MethodPost, plain.URL+"/p", strings.NewReader("question"))
	require.NoError(t, err)
	require.Equal(t, "POST /p question", text)
	// Headers of the hop end here, and the host is that of the address.
	answer := say(t, p, "GET "+plain.URL+"/ HTTP/1.1\r\nHost: internal.example.com\r\n"+authorization(p)+"Connection: X-Hop\r\nX-Hop: 1\r\nProxy-Connection: keep-alive\r\n\r\n")
	require.Equal(t, strings.TrimPrefix(plain.URL, "http://")+"[] [] [] []", answer.header.Get("X-Seen"))
}

// what two servers could read in two ways arrives as one request, or not at all.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Method+" "+r.URL.Path+" "+string(text))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	p := start(t, guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}}))
	const inner = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	head := "POST " + server.URL + "/outer HTTP/1.1\r\nHost: x\r\n" + authorization(p)
	for _, text := range []string{
		head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		head + fmt.Sprintf("Content-Length: %d\r\nContent-Length: 5\r\n\r\n12345", len(inner)) + inner,
		head + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + inner,
		head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
		head + "Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + inner,
		head + "Content-Length: +5\r\n\r\n12345" + inner,
		head + "X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n12345" + inner,
		"GET " + server.URL + "/outer\tHTTP/1.1\r\nX: HTTP/1.1\r\nHost: x\r\n" + authorization(p) + "\r\n" + inner,
	} {
		say(t, p, text)
	}
	require.NoError(t, p.Stop(t.Context()))
	server.Close()
	for _, request := range seen {
		require.NotContains(t, request, "/smuggled ")
	}
}

// an answer has an end.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 64<<10)
		for {
			if _, err := rw.Write(block); err != nil {
				return
			}
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	c := client(t, start(t, guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}})))
	for _, server := range []*httptest.Server{plain, secure} {
		_, body, err := get(t, c, server.URL)
		require.Error(t, err)
		require.LessOrEqual(t, len(body), proxy.MaxDown)
	}
}

// so has an upload.
func TestUploadsAreBounded(t *testing.T) {
	t.Parallel()
	type upload struct {
		size int64
		err  error
	}
	got := make(chan upload, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		size, err := io.Copy(io.Discard, r.Body)
		got <- upload{size, err}
	}))
	defer server.Close()
	c := client(t, start(t, guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}})))
	_, _, _ = ask(t, c, http.MethodPost, server.URL, io.LimitReader(zeros{}, 64<<20)) // the client sees an error, or a refusal that came first
	u := <-got
	require.Error(t, u.err)
	require.LessOrEqual(t, u.size, int64(proxy.MaxUp))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A server that answers with another protocol, unasked, is not let through to.
func TestUnaskedUpgrade(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n")
			_ = conn.Close()
		}
	}))
	defer server.Close()
	p := start(t, guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}}))
	require.Equal(t, http.StatusBadGateway, say(t, p, "GET "+server.URL+"/ HTTP/1.1\r\nHost: x\r\n"+authorization(p)+"\r\n").status)
}

// Stop ends tunnels and requests that would go on, and takes no more.
func TestStop(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 2)
	hang := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(rw).Flush()
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	plain, secure := httptest.NewServer(hang), httptest.NewTLSServer(hang)
	defer plain.Close()
	defer secure.Close()
	p, err := proxy.StartSmall(t.Context(), guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}}), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	c := client(t, p)
	ended := make(chan error, 2)
	for _, server := range []*httptest.Server{plain, secure} {
		go func() { _, _, err := get(t, c, server.URL); ended <- err }()
		<-arrived
	}
	require.NoError(t, p.Stop(context.Background()))
	require.Error(t, <-ended)
	require.Error(t, <-ended)
	require.NoError(t, p.Stop(context.Background()))
}

//go:build unix

package browser

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// testProxy lets connections through to one address.
type testProxy struct {
	server *httptest.Server
	allow  string

	mu    sync.Mutex
	asked map[string]int // by host and port
}

const proxyUser, proxyPassword = "browser", "secret"

func startProxy(tb testing.TB, allow string) *testProxy {
	tb.Helper()
	p := &testProxy{allow: allow, asked: map[string]int{}}
	p.server = httptest.NewServer(p)
	tb.Cleanup(p.server.Close)
	return p
}

func (p *testProxy) config() Proxy {
	return Proxy{Addr: p.server.Listener.Addr().String(), User: proxyUser, Password: proxyPassword}
}

func (p *testProxy) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(proxyUser+":"+proxyPassword)) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="browser"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	p.mu.Lock()
	p.asked[q.Host]++
	p.mu.Unlock()
	switch {
	case q.Host != p.allow:
		w.WriteHeader(http.StatusForbidden)
	case q.Method == http.MethodConnect:
		p.tunnel(w)
	default:
		(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: p.allow}) }}).ServeHTTP(w, q)
	}
}

func (p *testProxy) tunnel(w http.ResponseWriter) {
	up, err := net.Dial("tcp", p.allow)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	down, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = down.Close() }()
	_, _ = io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(up, down)
		_ = up.Close()
	}()
	_, _ = io.Copy(down, up)
}

// Package proxy is the way of the browser to the network: a forward proxy on loopback, all of whose connections are made by a guard. So what a
// page loads, wherever it comes from, is judged like the page itself, and no answer of DNS leads a browser inside.
//
// Only who knows its credentials may use it. It passes on plain requests for http addresses, and tunnels that carry TLS.
package proxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"hydrallm/services/enricher/internal/guard"
)

const (
	user           = "browser"
	maxConnections = 256      // of the browser; more wait
	maxHeader      = 64 << 10 // bytes of the headers of a request or an answer
)

// limits of what passes.
type limits struct {
	down, up   int           // bytes from and to the network, in one exchange or tunnel
	idle, life time.Duration // of a connection without bytes; of an exchange or tunnel
}

var usual = limits{down: 32 << 20, up: 1 << 20, idle: 30 * time.Second, life: 2 * time.Minute}

// Proxy runs from Start to Stop.
type Proxy struct {
	guard    *guard.Guard
	log      *slog.Logger
	limits   limits
	password string
	expected []byte // the header with the credentials

	listener  net.Listener
	server    *http.Server
	transport *http.Transport
	forward   *httputil.ReverseProxy
	cancel    context.CancelFunc // ends all requests and tunnels
	serving   sync.WaitGroup     // the server

	mu       sync.Mutex
	stopping bool
	handling sync.WaitGroup // requests and tunnels; added to under mu while not stopping
}

// Start begins to listen on a free port of 127.0.0.1, with credentials of its own. The values of ctx are those of its requests; its end is not
// theirs. The caller stops it.
func Start(ctx context.Context, g *guard.Guard, logger *slog.Logger) (*Proxy, error) {
	return start(ctx, g, logger, usual)
}

func start(ctx context.Context, g *guard.Guard, logger *slog.Logger, limits limits) (*Proxy, error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the browser: %w", err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &Proxy{guard: g, log: logger, limits: limits, password: rand.Text(), listener: listener, cancel: cancel}
	p.expected = []byte("Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+p.password)))
	p.transport = &http.Transport{
		DialContext:            g.DialContext,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    6,
		IdleConnTimeout:        limits.idle,
		ResponseHeaderTimeout:  limits.idle,
		MaxResponseHeaderBytes: maxHeader,
	}
	quiet := log.New(io.Discard, "", 0) // what goes wrong on the way to a page is nothing for a log
	p.forward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.Host = "" }, // that of the address, whatever the header said
		Transport:     p.transport,
		FlushInterval: -1,
		ErrorLog:      quiet,
		ModifyResponse: func(answer *http.Response) error {
			answer.Body = &limitedBody{answer.Body, limits.down}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { p.refuse(w, r, err) },
	}
	p.server = &http.Server{
		Handler:           p,
		BaseContext:       func(net.Listener) context.Context { return running },
		ReadHeaderTimeout: limits.idle,
		ReadTimeout:       limits.life,
		WriteTimeout:      limits.life,
		IdleTimeout:       limits.idle,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          quiet,

		DisableGeneralOptionsHandler: true, // it would answer without credentials
	}
	p.serving.Go(func() { _ = p.server.Serve(netutil.LimitListener(listener, maxConnections)) })
	return p, nil
}

// Addr is where it listens, host and port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Credentials are what it asks for, by the scheme Basic.
func (p *Proxy) Credentials() (name, password string) { return user, p.password }

// Stop ends all connections and waits until nothing is under way, or ctx ends.
func (p *Proxy) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	p.cancel()
	err := p.server.Close()
	done := make(chan struct{})
	go func() {
		p.handling.Wait()
		p.serving.Wait()
		p.transport.CloseIdleConnections()
		close(done)
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stopping the proxy of the browser: %w", context.Cause(ctx))
	}
}

// ServeHTTP makes a Proxy an http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.stopping {
		p.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	p.handling.Add(1)
	p.mu.Unlock()
	defer p.handling.Done()

	given := []byte(r.Header.Get("Proxy-Authorization"))
	if subtle.ConstantTimeCompare(given, p.expected) != 1 {
		w.Header().Set("Proxy-Authenticate", `Basic realm="hydrallm"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), p.limits.life)
	defer cancel()
	r = r.WithContext(ctx)
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme != "http" || r.URL.Host == "" || r.URL.User != nil || r.Header.Get("Upgrade") != "":
		p.refuse(w, r, guard.ErrBlocked)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, int64(p.limits.up))
		p.forward.ServeHTTP(w, r)
	}
}

// refuse answers without a reason: pages read it.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusBadGateway
	if errors.Is(err, guard.ErrBlocked) {
		status = http.StatusForbidden
		p.log.DebugContext(r.Context(), "a page was kept from an address", slog.String("host", r.URL.Host))
	}
	w.WriteHeader(status)
}

// limitedBody is the body of an answer, which breaks off when it is too long.
type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooMuch
	}
	return n, err
}

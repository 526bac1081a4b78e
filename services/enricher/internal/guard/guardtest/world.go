package guardtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/guard"
)

// Addresses of the World that are public. Any port of them leads to its one server.
const (
	PublicIP  = "93.184.216.34"
	PublicIP6 = "2606:2800:220:1::1"
)

// Host is a name of the world that resolves to PublicIP.
const Host = "page.example.com"

// PageText is in every page of the world that may be read, TrapText in what its traps serve.
const (
	PageText = "text-of-the-public-page that is long enough to be an article and is not boilerplate at all."
	TrapText = "text-of-the-trap"
)

// World is an Internet on loopback: names with the answers of their lookups, one server behind the public addresses, and traps, which are real
// listeners on loopback that nobody may ever connect to. Its methods may be used at once.
type World struct {
	public *httptest.Server
	traps  []net.Listener

	mu      sync.Mutex
	hosts   map[string]http.Handler   // by name without port
	names   map[string][][]netip.Addr // answers of one lookup after the other; the last one stays
	lookups map[string]int
	reached []string
}

// New starts a world, which ends with the test.
func New(tb testing.TB) *World {
	tb.Helper()
	w := &World{hosts: map[string]http.Handler{}, names: map[string][][]netip.Addr{}, lookups: map[string]int{}}
	w.public = httptest.NewServer(http.HandlerFunc(w.serve))
	tb.Cleanup(w.public.Close)
	w.Resolve(Host, PublicIP)
	w.Resolve("localhost", "::1", "127.0.0.1")
	w.setTraps(tb)
	return w
}

// setTraps listens below the ports that systems give to whoever asks for a free one. So nobody comes by who means another test that has ended.
func (w *World) setTraps(tb testing.TB) {
	tb.Helper()
	var listen net.ListenConfig
	for len(w.traps) == 0 {
		require.NoError(tb, tb.Context().Err(), "no port is free")
		if l, err := listen.Listen(tb.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.N(10_000))); err == nil { //nolint:gosec // G404: any port will do
			w.trap(tb, l)
		}
	}
	if l, err := listen.Listen(tb.Context(), "tcp", net.JoinHostPort("::1", w.TrapPort())); err == nil { // a machine may be without IPv6
		w.trap(tb, l)
	}
}

func (w *World) trap(tb testing.TB, l net.Listener) {
	tb.Helper()
	w.traps = append(w.traps, l)
	secret := &http.Server{ //nolint:gosec // G112: the clients are those of the test
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Access-Control-Allow-Origin", "*")
			_, _ = fmt.Fprintf(rw, "<html><title>%s</title><body><article><p>%s</p></article></body></html>", TrapText, TrapText)
		}),
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateNew {
				w.note("a connection to " + c.LocalAddr().String())
			}
		},
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = secret.Serve(l) })
	tb.Cleanup(func() { _ = secret.Close(); serving.Wait() })
}

// TrapPort is the port of the traps, on 127.0.0.1 and, where there is IPv6, on ::1.
func (w *World) TrapPort() string {
	_, port, _ := net.SplitHostPort(w.traps[0].Addr().String())
	return port
}

func (w *World) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reached = append(w.reached, what)
}

// Reached lists what was connected to, or would have been, although it is not public. It has to be empty.
func (w *World) Reached() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.reached...)
}

// Guard makes a guard that lives in this world. allow are its exceptions.
func (w *World) Guard(allow ...string) *guard.Guard {
	return guard.New(guard.Config{AllowHosts: allow, Resolver: w, Dial: w.dial, Own: func() ([]netip.Addr, error) { return nil, nil }})
}

// Resolve has every lookup of a name answered with addrs.
func (w *World) Resolve(name string, addrs ...string) { w.Rebind(name, addrs) }

// Rebind has the lookups of a name answered with one list after the other; the last one stays.
func (w *World) Rebind(name string, answers ...[]string) {
	lists := make([][]netip.Addr, len(answers))
	for i, texts := range answers {
		for _, text := range texts {
			lists[i] = append(lists[i], netip.MustParseAddr(text))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = lists
}

// Lookups says how often a name was looked up.
func (w *World) Lookups(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lookups[name]
}

// LookupNetIP makes a World a guard.Resolver.
func (w *World) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answers := w.names[name]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	n := w.lookups[name]
	w.lookups[name]++
	return answers[min(n, len(answers)-1)], nil
}

// dial leads public addresses to the public server. Loopback is dialled for real, where the traps count; nothing else is.
func (w *World) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("dialling %q, which is no address: %w", address, err)
	}
	switch {
	case to.Addr() == netip.MustParseAddr(PublicIP), to.Addr() == netip.MustParseAddr(PublicIP6):
		return dialer.DialContext(ctx, network, w.public.Listener.Addr().String())
	case to.Addr().IsLoopback():
		return dialer.DialContext(ctx, network, address)
	default:
		w.note("an attempt to connect to " + address)
		return nil, errors.New("not dialled in a test")
	}
}

// ServeHost answers for a host, on every port of it. One that nobody serves has a page that may be read.
func (w *World) ServeHost(host string, handler http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[host] = handler
}

// Page is a handler for a page that may be read, with more in its body.
func Page(more string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(rw, "<html><head><title>Page</title></head><body><article><h1>Page</h1><p>%s</p></article>%s</body></html>", PageText, more)
	}
}

// Redirect is a handler that sends elsewhere. The location is sent as it is.
func Redirect(status int, location string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header()["Location"] = []string{location}
		rw.WriteHeader(status)
	}
}

func (w *World) serve(rw http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	w.mu.Lock()
	handler := w.hosts[host]
	w.mu.Unlock()
	if handler == nil {
		handler = Page("")
	}
	handler.ServeHTTP(rw, r)
}

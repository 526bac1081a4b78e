package faultbus

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Rule says what happens to messages of some subjects. The first rule that matches counts.
type Rule struct {
	Subject string  // pattern of NATS, with "*" and ">"
	Loss    float64 // share of the messages that never arrive
	Repeat  float64 // share of the messages that arrive twice
}

// Proxy is a running proxy. Its methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	server   string
	rules    []Rule

	mu       sync.Mutex
	dice     *rand.Rand
	conns    map[net.Conn]struct{}
	closed   bool
	open     chan struct{} // closed while bytes pass
	lost     int
	repeated int
}

// Start puts a proxy in front of the server at serverURL until the end of the test. The same seed makes the same decisions for the same
// sequence of messages.
func Start(tb testing.TB, serverURL string, seed uint64, rules ...Rule) *Proxy {
	tb.Helper()
	u, err := url.Parse(serverURL)
	if err != nil {
		tb.Fatalf("reading the address of the NATS server: %v", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listening for the fault proxy: %v", err)
	}
	p := &Proxy{listener: ln, server: u.Host, rules: rules, dice: rand.New(rand.NewPCG(seed, seed)), conns: map[net.Conn]struct{}{}, open: make(chan struct{})}
	close(p.open)
	var running sync.WaitGroup
	running.Go(func() { p.accept(tb.Errorf, &running) })
	tb.Cleanup(func() {
		_ = ln.Close() // nobody waits for the port
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Cut()
		p.Join()
		running.Wait()
	})
	return p
}

// URL is the address that clients use instead of the server's.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Lost is the number of messages that did not arrive.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Repeated is the number of messages that arrived twice.
func (p *Proxy) Repeated() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.repeated
}

// Cut breaks every connection. Clients may connect again.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close() // it may be closed already
	}
}

// Part lets no byte pass any more, in either direction, until Join. Connections stay open, and new ones are taken, as when a cable is pulled. What was sent
// meanwhile passes afterwards, unless Cut has taken it away.
func (p *Proxy) Part() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		p.open = make(chan struct{})
	default:
	}
}

// Join ends Part.
func (p *Proxy) Join() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// gate is a connection that keeps what it has read while the proxy lets nothing pass.
type gate struct {
	net.Conn

	proxy *Proxy
}

func (g gate) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	g.pass()
	return n, err
}

func (g gate) pass() {
	g.proxy.mu.Lock()
	open := g.proxy.open
	g.proxy.mu.Unlock()
	<-open
}

func (p *Proxy) accept(report func(format string, args ...any), running *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			report("accepting a client of the fault proxy: %v", err)
			return
		}
		running.Go(func() { p.serve(report, client) })
	}
}

// serve carries one connection until either side ends it.
func (p *Proxy) serve(report func(format string, args ...any), client net.Conn) {
	defer client.Close() //nolint:errcheck // it may be closed already
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return // the client sees the end of its connection, as it would without a proxy
	}
	defer server.Close() //nolint:errcheck // it may be closed already
	if !p.keep(client, server) {
		return
	}
	defer p.forget(client, server)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, gate{server, p}) // ends with the connection
		_ = client.Close()
	})
	if err := relay(server, gate{client, p}, p.fate); errors.Is(err, errProtocol) {
		report("relaying NATS messages: %v", err)
	}
	_ = server.Close()
	back.Wait()
}

func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	return true
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

// fate decides how often a message arrives.
func (p *Proxy) fate(subject string) int {
	for _, r := range p.rules {
		if !matches(r.Subject, subject) {
			continue
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		switch x := p.dice.Float64(); {
		case x < r.Loss:
			p.lost++
			return 0
		case x < r.Loss+r.Repeat:
			p.repeated++
			return 2
		}
		return 1
	}
	return 1
}

// matches is the matching rule of NATS.
func matches(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		if token == ">" {
			return len(s) > i
		}
		if i >= len(s) || token != "*" && token != s[i] {
			return false
		}
	}
	return len(p) == len(s)
}

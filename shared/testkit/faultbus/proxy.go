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
	"time"
)

// Rule says what happens to messages of some subjects. The first rule that matches counts. Shares are parts of one, of which each message has one fate at most.
type Rule struct {
	Subject string  // pattern of NATS, with "*" and ">"
	Loss    float64 // share of the messages that never arrive
	Repeat  float64 // share of the messages that arrive twice
	Late    float64 // share of the messages that wait for up to Delay, and with them all that their client sends after them
	Swap    float64 // share of the messages that arrive after some that were sent after them, also of the same subject; a flush still means that all have arrived
	Delay   time.Duration
}

// Weather gives rules for everything that services of the gateway send each other: all of it is late now and then, and what has no order that anybody may rely on comes
// in another one. Requests come twice, which message ids are for, and word of what was lost comes again.
func Weather() []Rule {
	const delay = 20 * time.Millisecond
	return []Rule{
		{Subject: "hydra.v1.reply.>", Late: 0.1, Delay: delay}, // numbered, so that a gap is a loss
		{Subject: "hydra.v1.response.>", Late: 0.1, Delay: delay},
		{Subject: "hydra.v1.request.>", Late: 0.1, Delay: delay, Swap: 0.2, Repeat: 0.2},
		{Subject: "hydra.v1.alive.>", Late: 0.1, Delay: delay, Loss: 0.05},
		{Subject: "hydra.v1.>", Late: 0.1, Delay: delay, Swap: 0.2},
		{Subject: "$JS.ACK.>", Late: 0.1, Delay: delay, Swap: 0.2},
		{Subject: ">", Late: 0.1, Delay: delay},
	}
}

// Proxy is a running proxy. Its methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener // nil for one that is in the process
	dial     func() (net.Conn, error)
	report   func(format string, args ...any)
	running  sync.WaitGroup

	mu       sync.Mutex
	rules    []Rule
	dice     *rand.Rand
	conns    map[net.Conn]struct{}
	closed   bool
	open     chan struct{} // closed while bytes pass
	lost     int
	repeated int
	late     int
	swapped  int
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
	p := newProxy(tb, func() (net.Conn, error) { return net.Dial("tcp", u.Host) }, seed, rules)
	p.listener = ln
	p.running.Go(p.accept)
	tb.Cleanup(p.end)
	return p
}

// InProcess gives connections to a server in the same process.
type InProcess interface {
	InProcessConn() (net.Conn, error)
}

// Before puts a proxy in front of a server in this process until the end of the test.
func Before(tb testing.TB, server InProcess, seed uint64, rules ...Rule) *Proxy {
	tb.Helper()
	p := newProxy(tb, server.InProcessConn, seed, rules)
	tb.Cleanup(p.end)
	return p
}

func newProxy(tb testing.TB, dial func() (net.Conn, error), seed uint64, rules []Rule) *Proxy {
	tb.Helper()
	p := &Proxy{dial: dial, report: tb.Errorf, rules: rules, dice: rand.New(rand.NewPCG(seed, seed)), conns: map[net.Conn]struct{}{}, open: make(chan struct{})}
	close(p.open)
	return p
}

func (p *Proxy) end() {
	if p.listener != nil {
		_ = p.listener.Close() // nobody waits for the port
	}
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Cut()
	p.Join()
	p.running.Wait()
}

// InProcessConn gives a connection to the server, through the proxy.
func (p *Proxy) InProcessConn() (net.Conn, error) {
	client, near := net.Pipe()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	p.running.Go(func() { p.serve(near) })
	return client, nil
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

// Late is the number of messages that were held up.
func (p *Proxy) Late() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late
}

// Swapped is the number of messages that others were to overtake.
func (p *Proxy) Swapped() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.swapped
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

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.report("accepting a client of the fault proxy: %v", err)
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// serve carries one connection until either side ends it.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close() //nolint:errcheck // it may be closed already
	server, err := p.dial()
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
	wait, err := relay(server, gate{client, p}, p.decide)
	if errors.Is(err, errProtocol) {
		p.report("relaying NATS messages: %v", err)
	}
	_ = server.Close()
	_ = client.Close()
	wait()
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

// overtakers is the most messages that overtake one.
const overtakers = 4

// Follow makes other rules count from now on.
func (p *Proxy) Follow(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = rules
}

// decide throws the dice for a message.
func (p *Proxy) decide(subject string) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if !matches(r.Subject, subject) {
			continue
		}
		x := p.dice.Float64()
		within := func(share float64) bool {
			x -= share
			return x < 0
		}
		switch {
		case within(r.Loss):
			p.lost++
			return fate{}
		case within(r.Repeat):
			p.repeated++
			return fate{times: 2}
		case within(r.Late):
			p.late++
			return fate{times: 1, late: time.Duration(p.dice.Int64N(int64(r.Delay) + 1))}
		case within(r.Swap):
			p.swapped++
			return fate{times: 1, overtaken: 1 + p.dice.IntN(overtakers)}
		}
		break
	}
	return fate{times: 1}
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

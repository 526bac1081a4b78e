// Package pipenet is a network inside the process for tests with fake time: an HTTP server and the dialer that reaches it, connected by
// in-memory pipes, whose waiting counts as idle in a synctest bubble.
package pipenet

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
)

// Network serves one handler per host name.
type Network struct {
	mu    sync.Mutex
	hosts map[string]*listener
}

// New gives an empty network.
func New() *Network { return &Network{hosts: map[string]*listener{}} }

// Serve answers requests to host with handler until the returned function is called.
func (n *Network) Serve(host string, handler http.Handler) (stop func()) {
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{}), addr: addr(host)}
	n.mu.Lock()
	n.hosts[host] = l
	n.mu.Unlock()
	s := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)} //nolint:gosec // a test's own server in memory
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	return func() {
		_ = s.Close()
		wg.Wait()
	}
}

// Dial opens a connection to a host of the network; others refuse.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	l := n.hosts[host]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("no such host")}
	}
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   addr
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

type addr string

func (addr) Network() string  { return "pipe" }
func (a addr) String() string { return string(a) }

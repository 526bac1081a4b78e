// Package transport accepts the connections of clients and runs fasthttp on them. It adds what fasthttp lacks: a stop that neither loses
// running requests nor waits for idle connections, connections that know when their client has gone, and a close that lets the client read
// the last answer.
package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Server owns its listeners, their connections and their goroutines.
type Server struct {
	max  int // connections; 0 = unlimited
	tls  *tls.Config
	http *fasthttp.Server
	log  *slog.Logger

	listeners []net.Listener
	running   sync.WaitGroup // the accept loops and the connections
	stopping  atomic.Bool

	mu    sync.Mutex
	conns map[*Conn]struct{}
}

// NewServer makes a server that has not started. It serves up to maxConns connections at the same time, all there are for 0.
func NewServer(maxConns int, log *slog.Logger) *Server {
	return &Server{max: maxConns, log: log, conns: map[*Conn]struct{}{}}
}

func changeState(c net.Conn, state fasthttp.ConnState) {
	conn, ok := c.(*Conn)
	if !ok {
		return
	}
	if state == fasthttp.StateActive && !conn.state.CompareAndSwap(stateIdle, stateActive) {
		conn.state.CompareAndSwap(stateNew, stateActive)
	}
	if state == fasthttp.StateIdle {
		conn.idleSince.Store(time.Now().UnixNano())
		conn.state.CompareAndSwap(stateActive, stateIdle)
	}
}

// Door is where clients come in.
type Door struct {
	Addr    string      // host:port to listen on, unless there are Sockets
	Sockets []*os.File  // TCP sockets that listen already. The caller owns them: they go on listening when the server has stopped
	TLS     *tls.Config // nil = connections speak no TLS
}

// Start opens the door and serves http, which it takes over: it sets ConnState.
func (s *Server) Start(ctx context.Context, door Door, http *fasthttp.Server) error {
	http.ConnState = changeState
	s.http, s.tls = http, door.TLS
	if err := s.open(ctx, door); err != nil {
		s.shut()
		s.listeners = nil
		return fmt.Errorf("listening: %w", err)
	}
	for _, ln := range s.listeners {
		s.running.Go(func() { s.accept(ln) }) //nolint:contextcheck // connections outlive the start
	}
	return nil
}

func (s *Server) open(ctx context.Context, door Door) error {
	for _, socket := range door.Sockets {
		ln, err := net.FileListener(socket)
		if err != nil {
			return fmt.Errorf("socket %s: %w", socket.Name(), err)
		}
		s.listeners = append(s.listeners, ln)
		if _, ok := ln.(*net.TCPListener); !ok {
			return fmt.Errorf("socket %s: %w (%s)", socket.Name(), errNoTCP, ln.Addr().Network())
		}
	}
	if len(door.Sockets) > 0 {
		return nil
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", door.Addr)
	if err == nil {
		s.listeners = append(s.listeners, ln)
	}
	return err
}

var errNoTCP = errors.New("only TCP sockets can be served")

// shut stops to listen.
func (s *Server) shut() {
	for _, ln := range s.listeners {
		_ = ln.Close() // fails only when it is closed already
	}
}

// Addr is the address on which the server listens, the first one of several.
func (s *Server) Addr() net.Addr { return s.listeners[0].Addr() }

// Leave says that the server is about to stop. It goes on accepting and serving.
func (s *Server) Leave() { s.stopping.Store(true) }

// Stopping says that the server stops or is about to: answers should end their connections.
func (s *Server) Stopping() bool { return s.stopping.Load() }

// Longest pause after an error of accept, such as too many open files.
const maxAcceptPause = time.Second

func (s *Server) accept(ln net.Listener) {
	pause := 5 * time.Millisecond
	for {
		c, err := ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.log.Warn("accepting a connection", slog.Any("error", err))
			<-time.After(pause)
			pause = min(2*pause, maxAcceptPause)
			continue
		}
		pause = 5 * time.Millisecond
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			panic("a TCP listener gave another connection")
		}
		conn, err := newConn(tcp, s)
		if err != nil {
			_ = c.Close()
			continue
		}
		idle, ok := s.admit(conn)
		if idle != nil {
			idle.closeSoon()
		}
		if !ok {
			_ = c.Close()
			continue
		}
		go s.serve(conn)
	}
}

// serve runs in a goroutine per connection, which running counts until the connection is closed.
func (s *Server) serve(c *Conn) {
	if err := c.handshake(); err != nil {
		s.log.Debug("a connection does not come about", slog.String("client", c.RemoteAddr().String()), slog.Any("error", err))
		_ = c.Close()
		return
	}
	// The error was answered, or there was nobody to answer to.
	_ = s.http.ServeConn(c)
}

// surplus is how many connections there may be above the limit, for health checks and for telling others to come back later.
const surplus = 64

// admit takes a connection in, at the limit in the place of the one that was idle for longest, which the caller has to close then.
func (s *Server) admit(c *Conn) (idle *Conn, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.max > 0 && len(s.conns) >= s.max {
		if idle = s.claimIdle(); idle != nil {
			delete(s.conns, idle)
		} else if c.surplus = true; len(s.conns) >= s.max+surplus {
			return nil, false
		}
	}
	s.running.Add(1)
	s.conns[c] = struct{}{}
	return idle, true
}

// claimIdle claims the connection that was idle for longest, or gives nil.
func (s *Server) claimIdle() *Conn {
	for {
		var oldest *Conn
		for c := range s.conns {
			if c.quiet(c.state.Load(), firstRequest) && (oldest == nil || c.idleSince.Load() < oldest.idleSince.Load()) {
				oldest = c
			}
		}
		if oldest == nil || oldest.claim(firstRequest) {
			return oldest
		}
	}
}

func (s *Server) forget(c *Conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.running.Done()
}

// Len is the number of open connections.
func (s *Server) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Drain stops to accept connections, closes idle ones and waits until the others have been served or ctx ends.
func (s *Server) Drain(ctx context.Context) error {
	if s.listeners == nil {
		return nil
	}
	if !s.end(ctx.Done(), s.closeIdle) {
		return fmt.Errorf("%d connections are still served: %w", s.Len(), ctx.Err())
	}
	return nil
}

// Close closes every connection and waits for their goroutines.
func (s *Server) Close() {
	if s.listeners != nil {
		s.end(nil, s.closeAll)
	}
}

const endPause = 50 * time.Millisecond

// end stops to accept connections and applies closeSome again and again until none is left. It is false when limit was closed before.
func (s *Server) end(limit <-chan struct{}, closeSome func()) bool {
	s.stopping.Store(true)
	s.shut()
	done := s.done()
	ticker := time.NewTicker(endPause)
	defer ticker.Stop()
	for {
		closeSome()
		select {
		case <-done:
			return true
		case <-limit:
			return false
		case <-ticker.C:
		}
	}
}

func (s *Server) done() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	return done
}

func (s *Server) list() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*Conn, 0, len(s.conns))
	for c := range s.conns {
		list = append(list, c)
	}
	return list
}

func (s *Server) closeIdle() {
	for _, c := range s.list() {
		if c.claim(firstRequestStop) {
			c.closeSoon()
		}
	}
}

func (s *Server) closeAll() {
	conns := s.list()
	for _, c := range conns {
		c.Abort()
	}
	for _, c := range conns {
		_ = c.Close()
	}
}

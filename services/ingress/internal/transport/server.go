// Package transport accepts the connections of clients and runs fasthttp on them. It adds what fasthttp lacks: a stop that neither loses
// running requests nor waits for idle connections, connections that know when their client has gone, and a close that lets the client read
// the last answer.
package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Server owns a listener, its connections and their goroutines.
type Server struct {
	http *fasthttp.Server
	log  *slog.Logger

	listener net.Listener
	running  sync.WaitGroup // the accept loop and the connections
	stopping atomic.Bool

	mu    sync.Mutex
	conns map[*Conn]struct{}
}

// NewServer makes a server that has not started.
func NewServer(log *slog.Logger) *Server { return &Server{log: log, conns: map[*Conn]struct{}{}} }

func changeState(c net.Conn, state fasthttp.ConnState) {
	conn, ok := c.(*Conn)
	if !ok {
		return
	}
	if state == fasthttp.StateActive && !conn.state.CompareAndSwap(stateIdle, stateActive) {
		conn.state.CompareAndSwap(stateNew, stateActive)
	}
	if state == fasthttp.StateIdle {
		conn.state.CompareAndSwap(stateActive, stateIdle)
	}
}

// Start listens on addr (host:port) and serves http, which it takes over: it sets ConnState.
func (s *Server) Start(ctx context.Context, addr string, http *fasthttp.Server) error {
	http.ConnState = changeState
	s.http = http
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	s.listener = ln
	s.running.Go(s.accept)
	return nil
}

// Addr is the address on which the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Stopping says that Stop has begun: answers should end their connections.
func (s *Server) Stopping() bool { return s.stopping.Load() }

// Longest pause after an error of accept, such as too many open files.
const maxAcceptPause = time.Second

func (s *Server) accept() {
	pause := 5 * time.Millisecond
	for {
		c, err := s.listener.Accept()
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
		s.remember(conn)
		go s.serve(conn)
	}
}

// serve runs in a goroutine per connection, which running counts until the connection is closed.
func (s *Server) serve(c *Conn) {
	// The error was answered, or there was nobody to answer to.
	_ = s.http.ServeConn(c)
}

func (s *Server) remember(c *Conn) {
	s.running.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
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
	if s.listener == nil {
		return nil
	}
	if !s.end(ctx.Done(), s.closeIdle) {
		return fmt.Errorf("%d connections are still served: %w", s.Len(), ctx.Err())
	}
	return nil
}

// Close closes every connection and waits for their goroutines.
func (s *Server) Close() {
	if s.listener != nil {
		s.end(nil, s.closeAll)
	}
}

const endPause = 50 * time.Millisecond

// end stops to accept connections and applies closeSome again and again until none is left. It is false when limit was closed before.
func (s *Server) end(limit <-chan struct{}, closeSome func()) bool {
	s.stopping.Store(true)
	_ = s.listener.Close() // fails only when it is closed already
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

// firstRequest is how long a new connection may bring its first request although the server is stopping.
const firstRequest = time.Second

func (s *Server) closeIdle() {
	for _, c := range s.list() {
		idle := c.state.CompareAndSwap(stateIdle, stateClaimed) ||
			time.Since(c.since) > firstRequest && c.state.CompareAndSwap(stateNew, stateClaimed)
		if idle {
			_ = c.Close()
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

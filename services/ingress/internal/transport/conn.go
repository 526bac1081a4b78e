package transport

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// States of a connection. Claiming an idle connection for closing and a request that arrives on it exclude each other.
const (
	stateNew int32 = iota
	stateActive
	stateIdle
	stateClaimed
)

// Limits of a lingering close.
const (
	lingerTime  = 10 * time.Second
	lingerPause = 2 * time.Second
	lingerBytes = 128 << 20
)

// Conn is the connection of a client.
type Conn struct {
	*net.TCPConn
	server *Server
	raw    syscall.RawConn

	surplus   bool // above the limit of the server
	state     atomic.Int32
	idleSince atomic.Int64 // nanoseconds of Unix time; at first of being accepted
	linger    atomic.Bool
	closed    sync.Once
	err       error // of closing
}

func newConn(tcp *net.TCPConn, server *Server) (*Conn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &Conn{TCPConn: tcp, server: server, raw: raw}
	c.idleSince.Store(time.Now().UnixNano())
	return c, nil
}

// Surplus says that the server has more connections than it should. Such a connection is for health checks and for an error.
func (c *Conn) Surplus() bool { return c.surplus }

// firstRequest is how long a new connection may take to bring its first request before it counts as idle.
const firstRequest = time.Second

// quiet says whether nothing happens on the connection in a state.
func (c *Conn) quiet(state int32) bool {
	return state == stateIdle || state == stateNew && time.Since(time.Unix(0, c.idleSince.Load())) > firstRequest
}

// claim reserves a quiet connection for closing: no request is served on it any more.
func (c *Conn) claim() bool {
	state := c.state.Load()
	return c.quiet(state) && c.state.CompareAndSwap(state, stateClaimed)
}

// Linger makes Close wait until the client has stopped sending, within limits. Otherwise what the client still sends makes the kernel
// reset the connection, and the client can lose the answer that it has not read yet.
func (c *Conn) Linger() { c.linger.Store(true) }

// Abort makes everything that blocks on the connection return. The connection is of no use afterwards.
func (c *Conn) Abort() {
	c.linger.Store(false)
	_ = c.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection
}

// Close ends the connection. It is idempotent.
func (c *Conn) Close() error {
	c.closed.Do(func() {
		if c.linger.Load() {
			c.drain()
		}
		c.err = c.TCPConn.Close()
		c.server.forget(c)
	})
	return c.err
}

// drain tells the client that the answer is complete and throws away what it sends.
func (c *Conn) drain() {
	if err := c.CloseWrite(); err != nil {
		return
	}
	buf := make([]byte, 32<<10)
	end := time.Now().Add(lingerTime)
	for left := lingerBytes; left > 0 && c.linger.Load(); {
		pause := time.Now().Add(lingerPause)
		if pause.After(end) {
			pause = end
		}
		if err := c.SetReadDeadline(pause); err != nil {
			return
		}
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		left -= n
	}
}

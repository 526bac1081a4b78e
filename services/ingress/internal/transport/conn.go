package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
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
	net.Conn // what is read and written: tcp, or secure
	tcp      *net.TCPConn
	secure   *tls.Conn // nil without TLS
	server   *Server
	raw      syscall.RawConn

	surplus   bool // above the limit of the server
	state     atomic.Int32
	idleSince atomic.Int64 // nanoseconds of Unix time; at first of being accepted
	linger    atomic.Bool
	aborted   atomic.Bool
	plain     atomic.Bool // the client does not speak TLS although it should
	closed    sync.Once
	err       error // of closing
}

func newConn(tcp *net.TCPConn, server *Server) (*Conn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: tcp, tcp: tcp, server: server, raw: raw}
	if server.tls != nil {
		c.secure = tls.Server(tcp, server.tls)
		c.Conn = c.secure
	}
	c.idleSince.Store(time.Now().UnixNano())
	return c, nil
}

// handshakeTime bounds a TLS handshake.
const handshakeTime = 15 * time.Second

// plainHTTP answers a client that speaks HTTP where TLS is spoken.
const plainHTTP = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nThis port speaks HTTPS: the address has to begin with https://\n"

// handshake begins TLS, if the connection is to speak it.
func (c *Conn) handshake() error {
	if c.secure == nil {
		return nil
	}
	if err := c.tcp.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return err
	}
	if err := c.secure.HandshakeContext(context.Background()); err != nil {
		if head, ok := errors.AsType[tls.RecordHeaderError](err); ok && looksLikeHTTP(head.RecordHeader) {
			c.plain.Store(true)
			c.linger.Store(true)
			_, err = io.WriteString(c.tcp, plainHTTP)
		}
		return fmt.Errorf("TLS handshake: %w", err)
	}
	c.idleSince.Store(time.Now().UnixNano()) // the first request has its time from here on
	return c.tcp.SetDeadline(time.Time{})
}

// looksLikeHTTP says whether the first bytes of a client are those of a request.
func looksLikeHTTP(first [5]byte) bool {
	switch string(first[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}

// Surplus says that the server has more connections than it should. Such a connection is for health checks and for an error.
func (c *Conn) Surplus() bool { return c.surplus }

// How long a new connection may take to bring its first request before it counts as idle: where another one wants its place, and in a stop.
const (
	firstRequest     = time.Second
	firstRequestStop = 5 * time.Second
)

// quiet says whether nothing happens on the connection in a state. A new one gets the time patience for its first request.
func (c *Conn) quiet(state int32, patience time.Duration) bool {
	return state == stateIdle || state == stateNew && time.Since(time.Unix(0, c.idleSince.Load())) > patience
}

// claim reserves a quiet connection for closing: no request is served on it any more.
func (c *Conn) claim(patience time.Duration) bool {
	state := c.state.Load()
	return c.quiet(state, patience) && c.state.CompareAndSwap(state, stateClaimed)
}

// Linger makes Close wait until the client has stopped sending, within limits. Otherwise what the client still sends makes the kernel
// reset the connection, and the client can lose the answer that it has not read yet.
func (c *Conn) Linger() { c.linger.Store(true) }

// Abort makes everything that blocks on the connection return. The connection is of no use afterwards.
func (c *Conn) Abort() {
	c.linger.Store(false)
	c.aborted.Store(true)
	_ = c.tcp.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection
}

// Close ends the connection. It is idempotent.
func (c *Conn) Close() error {
	c.closed.Do(func() {
		if c.linger.Load() {
			c.drain()
		}
		c.err = c.end()
		c.server.forget(c)
	})
	return c.err
}

// closeSoon is Close for who must not wait: a client that speaks TLS and reads nothing takes seconds to be told. The server waits for it all the same.
func (c *Conn) closeSoon() { go func() { _ = c.Close() }() }

// end closes the connection. A client that speaks TLS is told, unless nothing can be sent any more.
func (c *Conn) end() error {
	if c.secure == nil || c.aborted.Load() || c.plain.Load() {
		return c.tcp.Close()
	}
	return c.secure.Close()
}

// drain tells the client that the answer is complete and throws away what it sends, which needs no decryption.
func (c *Conn) drain() {
	if c.secure != nil && !c.plain.Load() {
		if err := c.secure.CloseWrite(); err != nil { // it ends with the connection
			return
		}
	}
	if err := c.tcp.CloseWrite(); err != nil {
		return
	}
	buf := make([]byte, 32<<10)
	end := time.Now().Add(lingerTime)
	for left := lingerBytes; left > 0 && c.linger.Load(); {
		pause := time.Now().Add(lingerPause)
		if pause.After(end) {
			pause = end
		}
		if err := c.tcp.SetReadDeadline(pause); err != nil {
			return
		}
		n, err := c.tcp.Read(buf)
		if err != nil {
			return
		}
		left -= n
	}
}

package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// plain makes calls over HTTP/1.1 without TLS, each in the goroutine of its caller: net/http keeps two goroutines for each connection, so that a call
// costs four changes between them, more than all that is done in them. It uses net/http to write requests and to read answers.
type plain struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu     sync.Mutex
	idle   map[string][]*plainConn // by address, the one used last at the end
	closed bool
}

const (
	inlineBody     = 16 << 10 // bytes of a body that a socket takes without the upstream having to read
	maxInformation = 5        // answers of status 1xx before the real one, as net/http has it
)

var (
	errHeaderTooLarge = errors.New("upstream sends too large a header")
	errInformation    = errors.New("upstream sends too many informational answers")
	errUnseen         = errors.New("upstream closed the connection before the request came")
)

// takes says whether a call to u can be made here. Names that are not ASCII are left to net/http.
func (p *plain) takes(u *url.URL) bool {
	for i := range len(u.Host) {
		if u.Host[i] >= 0x80 {
			return false
		}
	}
	return canTell && u.Scheme == "http" && u.Hostname() != ""
}

// roundTrip sends a request that takes allowed, and gives the answer when its header is there. A connection that the upstream closed before it was
// used again is not used; the error is errUnseen when it did so while the request was on its way. The end of the context ends all of it.
func (p *plain) roundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	conn, err := p.take(ctx, req.URL)
	if err != nil {
		return nil, err
	}
	conn.stop = context.AfterFunc(ctx, func() { _ = conn.Conn.Close() })
	resp, err := conn.exchange(req)
	if err != nil {
		if ctx.Err() == nil && conn.unseen(err) {
			err = fmt.Errorf("%w: %w", errUnseen, err)
		}
		conn.discard()
		return nil, err
	}
	keep := !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols // to what nobody has asked for
	resp.Body = &plainBody{pool: p, conn: conn, body: resp.Body, keep: keep}
	return resp, nil
}

// take gives a connection that was kept, or a new one.
func (p *plain) take(ctx context.Context, u *url.URL) (*plainConn, error) {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	addr := net.JoinHostPort(u.Hostname(), port)
	for {
		conn := p.kept(addr)
		if conn == nil {
			break
		}
		if conn.timer.Stop() && !heard(conn.Conn) {
			return conn, nil
		}
		_ = conn.Conn.Close()
	}
	raw, err := p.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &plainConn{Conn: raw, addr: addr}, nil
}

func (p *plain) kept(addr string) *plainConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle[addr]
	if len(idle) == 0 {
		return nil
	}
	last := len(idle) - 1
	conn := idle[last]
	idle[last] = nil
	p.idle[addr] = idle[:last]
	return conn
}

// keep takes back a connection on which an answer was read to its end.
func (p *plain) keep(conn *plainConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle[conn.addr]) >= idleConnsPerHost {
		_ = conn.Conn.Close()
		return
	}
	if conn.timer == nil {
		conn.timer = time.AfterFunc(idleConnTimeout, func() { p.expire(conn) })
	} else {
		conn.timer.Reset(idleConnTimeout)
	}
	p.idle[conn.addr] = append(p.idle[conn.addr], conn)
}

// expire closes a connection that nobody has used for a while.
func (p *plain) expire(conn *plainConn) {
	p.mu.Lock()
	idle := p.idle[conn.addr]
	for i, c := range idle {
		if c == conn {
			p.idle[conn.addr] = append(idle[:i:i], idle[i+1:]...)
			break
		}
	}
	if len(p.idle[conn.addr]) == 0 {
		delete(p.idle, conn.addr)
	}
	p.mu.Unlock()
	_ = conn.Conn.Close() // whoever takes it at this moment sees that its timer is over
}

// close ends the connections that are kept, and keeps no more.
func (p *plain) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, idle := range p.idle {
		for _, conn := range idle {
			conn.timer.Stop()
			_ = conn.Conn.Close()
		}
	}
	clear(p.idle)
}

// plainConn is a connection that one call uses at a time.
type plainConn struct {
	net.Conn

	addr  string
	timer *time.Timer // of a connection that is kept; nil before the first time
	stop  func() bool // ends the watch over the context of the call

	reader  *bufio.Reader // of the call
	header  int64         // bytes that may still be read before the body
	sending atomic.Bool   // the request is not out yet
	writes  sync.WaitGroup
}

var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBufferBytes) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, inlineBody) }}
)

// Read is that of the connection, with a limit for what comes before the body.
func (c *plainConn) Read(p []byte) (int, error) {
	if c.header <= 0 {
		return 0, errHeaderTooLarge
	}
	if int64(len(p)) > c.header {
		p = p[:c.header]
	}
	n, err := c.Conn.Read(p)
	c.header -= int64(n)
	return n, err
}

// exchange sends a request and reads the header of its answer, which may come before all of a large body was sent.
func (c *plainConn) exchange(req *http.Request) (*http.Response, error) {
	c.reader = readers.Get().(*bufio.Reader) //nolint:forcetypeassert // the pool holds nothing else
	c.reader.Reset(c)
	c.header = maxHeaderBytes
	var failed error
	if req.ContentLength <= inlineBody {
		if failed = c.send(req); failed != nil && !ofNetwork(failed) {
			return nil, failed
		}
	} else {
		c.sending.Store(true)
		c.writes.Go(func() {
			switch err := c.send(req); {
			case err == nil:
				c.sending.Store(false)
			case !ofNetwork(err):
				_ = c.Conn.Close()
			}
		})
	}
	resp, err := c.answer(req)
	if err != nil && failed != nil {
		return nil, failed
	}
	if failed != nil {
		resp.Close = true
	}
	return resp, err
}

// ofNetwork says whether sending failed because of the connection, over which an answer may have come all the same.
func ofNetwork(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok
}

func (c *plainConn) send(req *http.Request) error {
	w := writers.Get().(*bufio.Writer) //nolint:forcetypeassert // the pool holds nothing else
	defer writers.Put(w)
	w.Reset(bodyConn{c.Conn})
	defer w.Reset(nil)
	err := req.Write(w)
	if broken := w.Flush(); broken != nil {
		err = broken // net/http hides that the connection is to blame where the body was on its way
	}
	if err != nil {
		return fmt.Errorf("sending the upstream request: %w", err)
	}
	return nil
}

// bodyConn sends the body of a request, which lies in memory, in one piece. net/http would have it copied in many.
type bodyConn struct{ net.Conn }

// ReadFrom implements io.ReaderFrom.
func (c bodyConn) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if body, ok := limited.R.(*bytes.Reader); ok && int64(body.Len()) <= limited.N {
			return body.WriteTo(c.Conn)
		}
	}
	return io.Copy(c.Conn, r)
}

func (c *plainConn) answer(req *http.Request) (*http.Response, error) {
	for range maxInformation + 1 {
		resp, err := http.ReadResponse(c.reader, req)
		if err != nil {
			return nil, fmt.Errorf("reading the upstream response: %w", err)
		}
		if resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols {
			c.header = math.MaxInt64
			return resp, nil
		}
	}
	return nil, errInformation
}

// unseen says whether the upstream had closed a kept connection before it had all of the request: it was not sent, or the upstream's system did not
// acknowledge it. Whether an upstream that closes later has done something can't be known.
func (c *plainConn) unseen(err error) bool {
	if c.timer == nil || c.header < maxHeaderBytes {
		return false
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "write" || errors.Is(err, io.ErrUnexpectedEOF) && (c.sending.Load() || unacknowledged(c.Conn))
}

// release ends the use by a call. It says whether the connection can be used by another one.
func (c *plainConn) release() bool {
	unbroken := c.stop()
	c.stop = nil
	unbroken = unbroken && c.reader.Buffered() == 0 // nobody has asked for more
	c.reader.Reset(nil)
	readers.Put(c.reader)
	c.reader = nil
	return unbroken
}

// discard closes the connection and ends what is still sent over it.
func (c *plainConn) discard() {
	_ = c.Conn.Close()
	c.writes.Wait()
	c.release()
}

// plainBody is the body of an answer. The end of it, or Close, lets the connection go. It has one reader.
type plainBody struct {
	pool *plain
	conn *plainConn // nil when it was let go
	body io.Reader
	keep bool // the connection is good for another call
	err  error
}

func (b *plainBody) Read(p []byte) (int, error) {
	if b.conn == nil {
		return 0, b.err
	}
	n, err := b.body.Read(p)
	if err != nil {
		b.end(err)
	}
	return n, err
}

// Close implements io.Closer. What was not read is not waited for.
func (b *plainBody) Close() error {
	if b.conn != nil {
		b.end(net.ErrClosed)
	}
	return nil
}

func (b *plainBody) end(err error) {
	conn := b.conn
	b.conn, b.err = nil, err
	if !errors.Is(err, io.EOF) || !b.keep || conn.sending.Load() {
		conn.discard()
		return
	}
	if conn.release() {
		b.pool.keep(conn)
		return
	}
	_ = conn.Conn.Close()
}

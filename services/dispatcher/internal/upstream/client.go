// Package upstream makes one HTTP call to an upstream: connection reuse, time limits, compression, and nothing of what the answer means.
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
)

// Limits of a connection. They bound what a hostile upstream can make the gateway hold.
const (
	dialTimeout       = 10 * time.Second
	tlsTimeout        = 10 * time.Second
	idleConnTimeout   = 90 * time.Second
	idleConnsPerHost  = 512
	maxHeaderBytes    = 256 << 10
	readBufferBytes   = 8 << 10   // of each connection, as is the next: hundreds of streams have one each
	writeBufferBytes  = 4 << 10   // a body that is larger passes it by
	drainBytes        = 16 << 10  // of the rest of an answer that are read for the sake of the connection
	streamBufferBytes = 512 << 10 // of an answer over HTTP/2 whose reader is slow; net/http would keep 4 MiB
	keepAliveInterval = 30 * time.Second
)

// ErrEncoding says that the answer came in an encoding that was not offered and is not known.
var ErrEncoding = errors.New("upstream answered in an unknown encoding")

// Config lets tests put a network of their own below the client.
type Config struct {
	// Dial opens connections; nil means the network.
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	UserAgent string
}

// Client makes calls. It is safe for concurrent use and keeps connections open between calls.
type Client struct {
	transport *http.Transport
	plain     *plain
	userAgent string
}

// New gives a client that ignores proxy settings of the environment and never follows redirects: an upstream is called where the
// configuration says, or not at all.
func New(cfg Config) *Client {
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAliveInterval}).DialContext
	}
	return &Client{userAgent: cfg.UserAgent, plain: &plain{dial: dial, idle: map[string][]*plainConn{}}, transport: &http.Transport{
		DialContext: dial, TLSHandshakeTimeout: tlsTimeout, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: idleConnsPerHost, IdleConnTimeout: idleConnTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes, DisableCompression: true,
		ReadBufferSize: readBufferBytes, WriteBufferSize: writeBufferBytes,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: streamBufferBytes},
	}}
}

// Close ends idle connections.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	c.plain.close()
}

// Call is one request to an upstream.
type Call struct {
	Method         string // "" = POST
	URL            string
	Key            string      // for the dialect, which knows where it belongs; the client itself leaves it alone
	Header         http.Header // owned by the call
	Body           []byte      // not changed; must stay as it is until the response is closed
	Stream         bool        // an event stream is asked for
	HeadersTimeout time.Duration
	RequestTimeout time.Duration // from sending to the last byte
}

// Response is the answer to a call. The caller must Close it.
type Response struct {
	Status int
	Header http.Header
	Length int64     // Content-Length, -1 when unknown
	Body   io.Reader // decoded; a read that fails because of Abort or a time limit gives the cause

	raw    io.Closer
	ctx    context.Context //nolint:containedctx // the lifetime of the body, ended by Close
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// Do sends the call and returns when the response headers are there. The error is classify.ErrHeaderTimeout,
// classify.ErrTotalTimeout or the cause of ctx when one of them ended the call.
func (c *Client) Do(ctx context.Context, call Call) (*Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	total := time.AfterFunc(call.RequestTimeout, func() { cancel(classify.ErrTotalTimeout) })
	resp, err := c.send(ctx, cancel, call) //nolint:bodyclose // Response.Close closes it
	if err != nil {
		total.Stop()
		cancel(nil)
		return nil, err
	}
	r := &Response{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength, raw: resp.Body, ctx: ctx, cancel: cancel, timer: total}
	if r.Body, err = decode(resp); err != nil {
		r.Close()
		return nil, err
	}
	r.Body = causeReader{r.Body, ctx}
	return r, nil
}

// maxStale bounds how often a call is sent again because its connection turned out to be closed.
const maxStale = 10

// stale says of an error that the upstream had closed the connection before it was used again, so that it can't have seen the request. net/http sends
// requests again by itself then, but not those of POST.
func stale(err error) bool {
	return errors.Is(err, errUnseen) || strings.Contains(err.Error(), "server closed idle connection") // net/http has no name for it
}

func (c *Client) send(ctx context.Context, cancel context.CancelCauseFunc, call Call) (*http.Response, error) {
	call.Header.Set("User-Agent", c.userAgent)
	// An event stream is never worth compressing, and many servers hold compressed chunks back.
	if call.Stream {
		call.Header.Set("Accept-Encoding", "identity")
	} else {
		call.Header.Set("Accept-Encoding", "gzip")
	}
	header := time.AfterFunc(call.HeadersTimeout, func() { cancel(classify.ErrHeaderTimeout) })
	defer header.Stop()
	for n := 0; ; n++ {
		req, err := http.NewRequestWithContext(ctx, cmp.Or(call.Method, http.MethodPost), call.URL, bytes.NewReader(call.Body))
		if err != nil {
			return nil, fmt.Errorf("building the upstream request: %w", err)
		}
		req.Header = call.Header
		resp, err := c.roundTrip(req)
		switch {
		case err == nil:
			return resp, nil
		case !stale(err) || n == maxStale:
			return nil, withCause(ctx, err)
		}
	}
}

func (c *Client) roundTrip(req *http.Request) (*http.Response, error) {
	if c.plain.takes(req.URL) {
		return c.plain.roundTrip(req)
	}
	return c.transport.RoundTrip(req)
}

// withCause replaces the bare "context canceled" of a call that was ended on purpose.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// NewResponse makes the answer of something that is no HTTP server, such as a program or a server with a protocol of its own. body is
// closed with the response; cancel, which ends the work behind it, must be that of ctx. There is no time limit but those of ctx.
func NewResponse(ctx context.Context, cancel context.CancelCauseFunc, status int, header http.Header, body io.ReadCloser) *Response {
	return &Response{
		Status: status, Header: header, Length: -1, Body: causeReader{body, ctx}, raw: body, ctx: ctx, cancel: cancel,
		timer: time.NewTimer(0),
	}
}

// Context ends with the call: its cause is the reason.
func (r *Response) Context() context.Context { return r.ctx }

// Abort ends a running read of the body with cause.
func (r *Response) Abort(cause error) { r.cancel(cause) }

// Close releases the connection: back for reuse when the body was read to its end, closed otherwise.
func (r *Response) Close() {
	r.timer.Stop()
	_ = r.raw.Close() // the answer has been taken; nothing depends on the rest
	r.cancel(nil)
}

// Drain reads the rest of a finished answer for at most limit, so that the connection can be reused, and closes the response.
func (r *Response) Drain(limit time.Duration) {
	stop := time.AfterFunc(limit, func() { r.cancel(context.Canceled) })
	_, _ = io.CopyN(io.Discard, r.Body, drainBytes)
	stop.Stop()
	r.Close()
}

// causeReader reports why a body ended early.
type causeReader struct {
	r   io.Reader
	ctx context.Context //nolint:containedctx // the lifetime of the body
}

func (c causeReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = withCause(c.ctx, err)
	}
	return n, err
}

package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	dialTimeout    = 10 * time.Second
	goodbyeTimeout = 2 * time.Second
	sessionHeader  = "Mcp-Session-Id"
)

var errTooMuch = fmt.Errorf("the server's answer has more than %d bytes", maxAnswer)

// newHTTP gives the client below the SDK's. The address of the server is of the configuration and may be internal; nothing leads
// anywhere else, so that the token goes to nobody else.
func newHTTP(token string) *http.Client {
	return &http.Client{
		Transport: &carrier{token: token, base: &http.Transport{
			DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// carrier adds the token, and bounds answers.
type carrier struct {
	token string
	base  *http.Transport
}

func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.Method == http.MethodDelete {
		return c.goodbye(r)
	}
	resp, err := c.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &bounded{ReadCloser: resp.Body, left: maxAnswer}
	if resp.StatusCode == http.StatusNotFound && r.Header.Get(sessionHeader) != "" {
		// The session is gone. The SDK overlooks it when the server says so in words of JSON-RPC.
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	}
	return resp, nil
}

// goodbye ends a session. Nobody waits long for a server that does not care.
func (c *carrier) goodbye(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), goodbyeTimeout)
	defer cancel()
	resp, err := c.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	resp.Body = http.NoBody
	return resp, nil
}

// CloseIdleConnections lets http.Client close them.
func (c *carrier) CloseIdleConnections() { c.base.CloseIdleConnections() }

// bounded is a body that fails when it is too long.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooMuch
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// hide leaves addresses out of an error: they may hold passwords.
func hide(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

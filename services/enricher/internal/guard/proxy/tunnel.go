package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

var (
	errTooMuch = errors.New("more than one connection may carry")
	errNoTLS   = errors.New("no TLS")
)

// handshake is the first byte of every connection with TLS, RFC 8446 section 5.1.
const handshake = 22

// tunnel connects the browser with a host. It carries TLS alone, so that no other protocol is spoken to hosts.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	remote, err := p.guard.DialContext(r.Context(), "tcp", r.URL.Host)
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	defer func() { _ = remote.Close() }()
	local, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	defer func() { _ = local.Close() }()
	if _, err := io.WriteString(local, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	relay(r.Context(), p.limits, local, buffered.Reader, remote)
}

// relay carries bytes both ways until one side ends, is silent for long, sends too much, or ctx ends. fromLocal has what was read of local ahead.
// Both connections are closed then.
func relay(ctx context.Context, l limits, local net.Conn, fromLocal *bufio.Reader, remote net.Conn) {
	closeBoth := func() { _ = local.Close(); _ = remote.Close() }
	defer context.AfterFunc(ctx, closeBoth)()
	up := &metered{r: fromLocal, left: l.up, idle: l.idle, conns: [2]net.Conn{local, remote}}
	down := &metered{r: remote, left: l.down, idle: l.idle, conns: [2]net.Conn{local, remote}}
	var both sync.WaitGroup
	both.Go(func() {
		defer closeBoth()
		if up.alive(); checkTLS(fromLocal) == nil {
			_, _ = io.Copy(remote, up)
		}
	})
	both.Go(func() {
		defer closeBoth()
		_, _ = io.Copy(local, down)
	})
	both.Wait()
}

func checkTLS(r *bufio.Reader) error {
	first, err := r.Peek(1)
	if err == nil && first[0] != handshake {
		return errNoTLS
	}
	return err
}

// metered reads at most left bytes. Whatever it reads keeps both connections alive.
type metered struct {
	r     io.Reader
	left  int
	idle  time.Duration
	conns [2]net.Conn
}

func (m *metered) alive() {
	for _, c := range m.conns {
		_ = c.SetDeadline(time.Now().Add(m.idle))
	}
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.alive()
	if m.left -= n; m.left < 0 {
		return 0, errTooMuch
	}
	return n, err
}

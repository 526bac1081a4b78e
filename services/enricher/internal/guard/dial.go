package guard

import (
	"context"
	"net"
	"net/netip"
	"time"
)

const (
	maxDialled = 8 // addresses of one host that are tried
	// nextAfter is how long an attempt to connect may be under way before the next address is tried beside it (RFC 8305).
	nextAfter = 250 * time.Millisecond
)

// DialContext connects to a host and port over TCP, where http.Transport and proxies want it. The host is looked up once, all its addresses are
// judged, and the connection goes to one of these. An error is ErrBlocked or that of the network; the latter names addresses and is not for
// strangers.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	hostname, port, err := net.SplitHostPort(address)
	if err != nil || network != "tcp" {
		return nil, ErrBlocked
	}
	h, err := g.judge(hostname, port)
	if err != nil {
		return nil, err
	}
	addrs, err := g.resolve(ctx, h)
	if err != nil {
		return nil, err
	}
	return g.dialFirst(ctx, addrs[:min(len(addrs), maxDialled)], port)
}

// dialFirst returns the first connection that can be made to any of the addresses. Each has its turn when the one before failed, or takes long.
func (g *Guard) dialFirst(ctx context.Context, addrs []netip.Addr, port string) (net.Conn, error) {
	type attempt struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	done, pending := make(chan attempt, len(addrs)), 0
	defer func() { // whoever lost is waited for, and closed if it arrived after all
		cancel()
		for ; pending > 0; pending-- {
			if late := <-done; late.err == nil {
				_ = late.conn.Close()
			}
		}
	}()
	turn := time.NewTimer(0)
	defer turn.Stop()
	var first error
	for len(addrs) > 0 || pending > 0 {
		select {
		case <-turn.C:
			if len(addrs) == 0 {
				continue
			}
			to := net.JoinHostPort(addrs[0].String(), port)
			addrs, pending = addrs[1:], pending+1
			go func() {
				conn, err := g.dial(ctx, "tcp", to)
				done <- attempt{conn, err}
			}()
			turn.Reset(nextAfter)
		case got := <-done:
			pending--
			if got.err == nil {
				return got.conn, nil
			}
			if first == nil {
				first = got.err
			}
			turn.Reset(0)
		}
	}
	return nil, first
}

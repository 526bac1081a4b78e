package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrBlocked is the one answer for all that may not be fetched. It has no reason, because reasons tell strangers what the network looks like
// whether a name exists in it, and where it leads.
var ErrBlocked = errors.New("the address may not be fetched")

const (
	maxURL        = 8192 // bytes of an address
	lookupTimeout = 10 * time.Second
	dialTimeout   = 10 * time.Second
)

// Resolver looks names up. A [net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dial connects to an address and port, both as numbers, over TCP.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Config of a guard. Its zero value allows the public Internet.
type Config struct {
	AllowHosts []string // names and addresses as in a URL, without brackets and port, that may be fetched although they are internal
	Resolver   Resolver // nil = that of the system
	Dial       Dial     // nil = that of the system
	// Own lists the addresses of this machine. nil = ask the system.
	Own func() ([]netip.Addr, error)
}

// Guard judges addresses and makes connections to those that are allowed. It holds nothing that must be released, and many may use it at once.
type Guard struct {
	allow    map[host]struct{}
	resolver Resolver
	dial     Dial
	own      func() ([]netip.Addr, error)
}

// New makes a guard. Hosts that no URL could have are left out of the exceptions.
func New(cfg Config) *Guard {
	g := &Guard{allow: map[host]struct{}{}, resolver: cfg.Resolver, dial: cfg.Dial, own: cfg.Own}
	if g.resolver == nil {
		g.resolver = net.DefaultResolver
	}
	if g.dial == nil {
		g.dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	if g.own == nil {
		g.own = ownAddresses
	}
	for _, text := range cfg.AllowHosts {
		if h, ok := parseHost(text); ok {
			g.allow[h] = struct{}{}
		}
	}
	return g
}

// Parse judges an address as far as that is possible without a lookup, and returns it with its host in one spelling, its query escaped and without fragment. Who
// connects through DialContext has the rest judged there. All errors are ErrBlocked.
func (g *Guard) Parse(rawURL string) (*url.URL, error) {
	u, _, err := g.parse(rawURL)
	return u, err
}

// Check judges an address with all that its host resolves to, and returns it as Parse does. It makes no connection, and promises nothing about a
// later lookup. Errors are ErrBlocked, or that of ctx.
func (g *Guard) Check(ctx context.Context, rawURL string) (*url.URL, error) {
	u, h, err := g.parse(rawURL)
	if err != nil {
		return nil, err
	}
	if _, err := g.resolve(ctx, h); err != nil {
		return nil, err
	}
	return u, nil
}

func (g *Guard) parse(rawURL string) (*url.URL, host, error) {
	if len(rawURL) > maxURL {
		return nil, host{}, ErrBlocked
	}
	u, err := url.Parse(strings.TrimSpace(rawURL))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Opaque != "" {
		return nil, host{}, ErrBlocked
	}
	port := u.Port()
	if port == "" && u.Scheme == "http" {
		port = "80"
	} else if port == "" {
		port = "443"
	}
	h, err := g.judge(u.Hostname(), port)
	if err != nil {
		return nil, host{}, err
	}
	written := h.String()
	switch {
	case u.Port() != "":
		u.Host = net.JoinHostPort(written, u.Port())
	case h.addr.Is6():
		u.Host = "[" + written + "]"
	default:
		u.Host = written
	}
	u.Fragment, u.RawFragment = "", ""
	u.RawQuery = escapeQuery(u.RawQuery)
	return u, h, nil
}

// escapeQuery writes what people leave as it is, spaces and Korean for example, the way browsers send it.
func escapeQuery(query string) string {
	var b strings.Builder
	for _, c := range []byte(query) {
		if c > ' ' && c < 0x7f && c != '"' && c != '<' && c != '>' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// judge reads a host and a port and refuses those that need no lookup for it. Below 1024 are the ports of mail, shells and shares, which are
// not there to be spoken to in HTTP; on those for the web, and on all above, pages are found.
func (g *Guard) judge(hostname, port string) (host, error) {
	h, ok := parseHost(hostname)
	n, err := strconv.ParseUint(port, 10, 16)
	if !ok || err != nil || n == 0 {
		return host{}, ErrBlocked
	}
	if g.allowed(h) {
		return h, nil
	}
	if n < 1024 && n != 80 && n != 443 || h.addr.IsValid() && isInternal(h.addr) {
		return host{}, ErrBlocked
	}
	return h, nil
}

// allowed says whether h itself is an exception: what a name resolves to is none, nor is another name of the same machine.
func (g *Guard) allowed(h host) bool {
	_, ok := g.allow[h]
	return ok
}

// resolve returns all addresses of a host. One that is internal condemns all, unless the host is an exception.
func (g *Guard) resolve(ctx context.Context, h host) ([]netip.Addr, error) {
	addrs := []netip.Addr{h.addr.Unmap()}
	if h.name != "" {
		lookup, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		found, err := g.resolver.LookupNetIP(lookup, "ip", h.name)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil || len(found) == 0 {
			return nil, ErrBlocked
		}
		addrs = addrs[:0]
		for _, addr := range found {
			addrs = append(addrs, addr.Unmap())
		}
	}
	if g.allowed(h) {
		return addrs, nil
	}
	own, err := g.own()
	if err != nil {
		return nil, ErrBlocked
	}
	for _, addr := range addrs {
		if isInternal(addr) || slices.Contains(own, addr) {
			return nil, ErrBlocked
		}
	}
	return addrs, nil
}

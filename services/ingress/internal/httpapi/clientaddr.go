package httpapi

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// from is the address of the client.
func (x *exchange) from() netip.Addr {
	if !x.peer.IsValid() {
		peer, _ := netip.AddrFromSlice(x.RemoteIP())
		x.peer = behind(peer.Unmap(), &x.Request.Header, x.api.TrustedProxies)
	}
	return x.peer
}

// behind gives the address of the client behind trusted proxies. Each of them adds the address that it was asked from at the end of
// X-Forwarded-For, so that the last one that is no trusted proxy counts: what stands before it anybody may have written.
func behind(peer netip.Addr, h *fasthttp.RequestHeader, trusted []netip.Prefix) netip.Addr {
	if len(trusted) == 0 || !isTrusted(peer, trusted) {
		return peer
	}
	lines := h.PeekAll(fasthttp.HeaderXForwardedFor)
	for _, line := range slices.Backward(lines) {
		hops := strings.Split(string(line), ",")
		for _, hop := range slices.Backward(hops) {
			addr, ok := hopAddr(strings.TrimSpace(hop))
			if !ok {
				return peer // what comes before it can't be told
			}
			if peer = addr; !isTrusted(peer, trusted) {
				return peer
			}
		}
	}
	return peer
}

// hopAddr reads an address, which some proxies write with a port.
func hopAddr(hop string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(hop); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]"))
	return addr.Unmap().WithZone(""), err == nil
}

func isTrusted(addr netip.Addr, trusted []netip.Prefix) bool {
	return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

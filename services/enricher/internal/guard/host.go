package guard

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

const (
	maxName  = 253 // characters of a name, RFC 1035
	maxLabel = 63
)

// host is the host of a URL in its one spelling: an address, or a name in lower case ASCII, with its final dot if it has one.
type host struct {
	addr netip.Addr // not valid for a name
	name string     // "" for an address
}

func (h host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}

// parseHost reads a host as browsers do, so that the guard and they speak of the same one: characters are mapped as for IDNA, and what ends in
// a number is an IPv4 address in any of its spellings or nothing (https://url.spec.whatwg.org/#host-parsing). An address in IPv6 stands without
// brackets and has no zone.
func parseHost(text string) (host, bool) {
	if strings.Contains(text, ":") {
		addr, err := netip.ParseAddr(text)
		return host{addr: addr}, err == nil && addr.Zone() == ""
	}
	name, ok := asciiName(text)
	if !ok {
		return host{}, false
	}
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	if !isNumber(labels[len(labels)-1]) {
		return host{name: name}, true
	}
	addr, ok := parseIPv4(labels)
	return host{addr: addr}, ok
}

func asciiName(text string) (string, bool) {
	name := strings.ToLower(text)
	if !isASCII(name) {
		mapped, err := idna.Lookup.ToASCII(text)
		if err != nil {
			return "", false
		}
		name = mapped
	}
	if len(name) > maxName+1 {
		return "", false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label == "" || len(label) > maxLabel || strings.ContainsFunc(label, notOfName) {
			return "", false
		}
	}
	return name, true
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// notOfName allows the underscore, which is in no name of a host and yet in many addresses of pages.
func notOfName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

func isNumber(label string) bool {
	if _, ok := number(label); ok {
		return true
	}
	return !strings.ContainsFunc(label, func(r rune) bool { return r < '0' || r > '9' })
}

// number reads a part of an IPv4 address, which may be decimal, octal (0177) or hexadecimal (0x7f).
func number(part string) (uint64, bool) {
	if part == "0x" {
		return 0, true
	}
	digits, base := part, 10
	if rest, hex := strings.CutPrefix(part, "0x"); hex {
		digits, base = rest, 16
	} else if rest, octal := strings.CutPrefix(part, "0"); octal && rest != "" {
		digits, base = rest, 8
	}
	n, err := strconv.ParseUint(digits, base, 64)
	return n, err == nil
}

// parseIPv4 reads up to four parts, the last of which fills what the others leave: 127.1 is 127.0.0.1.
func parseIPv4(parts []string) (netip.Addr, bool) {
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var all uint64
	for i, part := range parts {
		n, ok := number(part)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (4 - i)
		}
		if !ok || n >= 1<<bits {
			return netip.Addr{}, false
		}
		all = all<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}), true
}

package guard

import (
	"net"
	"net/netip"
)

// special are the blocks of IPv4, and those within the global unicast block of IPv6, that lead to no host of the public Internet, or by a detour
// to one that is not judged. They are those that IANA's registries of special-purpose addresses call not globally reachable (RFC 6890), with
// multicast, and one address that is public by its number alone.
var special = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // shared, behind the NAT of a carrier
	"127.0.0.0/8",      // loopback
	"168.63.129.16/32", // the platform of Azure, in every virtual machine
	"169.254.0.0/16",   // link-local, and the metadata of clouds
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // assignments of the IETF
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // relays of 6to4
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, broadcast
	"2001::/23",        // assignments of the IETF: Teredo, ORCHID, benchmarks
	"2001:db8::/32",    // documentation
	"2002::/16",        // 6to4, which holds any IPv4 address
	"3fff::/20",        // documentation
)

// global is all of IPv6 that is given to hosts of the Internet. What is outside is loopback, private (fc00::/7), link-local (fe80::/10),
// site-local (fec0::/10), multicast, reserved, or holds an IPv4 address: mapped, compatible, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48).
var global = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// isInternal judges an address by its number. An IPv4 address mapped into IPv6 is the IPv4 address.
func isInternal(addr netip.Addr) bool {
	addr = addr.Unmap()
	if !addr.IsValid() || addr.Zone() != "" || addr.Is6() && !global.Contains(addr) {
		return true
	}
	for _, block := range special {
		if block.Contains(addr) {
			return true
		}
	}
	return false
}

// ownAddresses are those of this machine, behind which services listen that the world may not reach.
func ownAddresses() ([]netip.Addr, error) {
	nets, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, n := range nets {
		if prefix, err := netip.ParsePrefix(n.String()); err == nil {
			own = append(own, prefix.Addr().Unmap())
		}
	}
	return own, nil
}

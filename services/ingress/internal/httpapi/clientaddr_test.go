package httpapi

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// what a client writes itself never counts, what a trusted proxy adds does.
func TestAddressBehindProxies(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	tests := map[string]struct {
		peer  string
		lines []string
		want  string
	}{
		"no proxy":                      {"192.0.2.1", []string{"198.51.100.1"}, "192.0.2.1"},
		"a proxy without the header":    {"10.0.0.1", nil, "10.0.0.1"},
		"a proxy":                       {"10.0.0.1", []string{"198.51.100.1"}, "198.51.100.1"},
		"what the client wrote":         {"10.0.0.1", []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		"two proxies":                   {"10.0.0.1", []string{"203.0.113.9, 198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		"two lines":                     {"10.0.0.1", []string{"203.0.113.9", "198.51.100.1"}, "198.51.100.1"},
		"two lines, a proxy in between": {"10.0.0.1", []string{"203.0.113.9, 198.51.100.1", "10.9.9.9"}, "198.51.100.1"},
		"only proxies":                  {"10.0.0.1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"no address":                    {"10.0.0.1", []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		"no address behind a proxy":     {"10.0.0.1", []string{"198.51.100.1, _hidden, 10.0.0.2"}, "10.0.0.2"},
		"empty":                         {"10.0.0.1", []string{""}, "10.0.0.1"},
		"with a port":                   {"10.0.0.1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		"IPv6":                          {"10.0.0.1", []string{"2001:db8::1"}, "2001:db8::1"},
		"IPv6 in brackets":              {"10.0.0.1", []string{"[2001:db8::1]"}, "2001:db8::1"},
		"IPv6 with a port":              {"fd00::1", []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		"IPv4 as IPv6":                  {"10.0.0.1", []string{"198.51.100.1, ::ffff:10.0.0.2"}, "198.51.100.1"},
		"a zone":                        {"10.0.0.1", []string{"fe80::1%eth0"}, "fe80::1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h fasthttp.RequestHeader
			for _, line := range tt.lines {
				h.Add("X-Forwarded-For", line)
			}
			require.Equal(t, tt.want, behind(netip.MustParseAddr(tt.peer), &h, trusted).String())
			require.Equal(t, tt.peer, behind(netip.MustParseAddr(tt.peer), &h, nil).String(), "by default nobody is trusted")
		})
	}
}

// Whatever a header says, the address is one, and never one of it unless a trusted proxy has it.
func FuzzAddressBehindProxies(f *testing.F) {
	f.Add("198.51.100.1, 10.0.0.2", "[::1]:80")
	f.Fuzz(func(t *testing.T, one, two string) {
		var h fasthttp.RequestHeader
		h.Add("X-Forwarded-For", one)
		h.Add("X-Forwarded-For", two)
		peer := netip.MustParseAddr("192.0.2.1")
		require.Equal(t, peer, behind(peer, &h, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}))
		require.True(t, behind(peer, &h, []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}).IsValid())
	})
}

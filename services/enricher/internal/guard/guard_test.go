package guard_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/guard/guardtest"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// none of them is let through, by a check or by a connection.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	w := guardtest.New(t)
	g := w.Guard()
	require.Greater(t, len(w.Addresses()), 60)
	for _, raw := range w.Addresses() {
		_, err := g.Check(t.Context(), raw)
		require.Equal(t, guard.ErrBlocked, err, "%q", raw)
		// Whoever connects without a check, and takes the address apart in another way, gets no further.
		rest := raw[strings.Index(raw, "//")+1:]
		host, _, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
		conn, err := g.DialContext(t.Context(), "tcp", host)
		require.Equal(t, guard.ErrBlocked, err, "%q", host)
		require.Nil(t, conn)
	}
	require.Empty(t, w.Reached())
}

// every address of the blocks and their edges, and their neighbours that are public.
func TestBlocks(t *testing.T) {
	t.Parallel()
	g := guardtest.New(t).Guard()
	tests := map[string]bool{
		"9.255.255.255": true, "10.0.0.0": false, "10.255.255.255": false, "11.0.0.0": true, "0.255.255.255": false, "1.0.0.0": true,
		"100.63.255.255": true, "100.64.0.0": false, "100.127.255.255": false, "100.128.0.0": true, "126.255.255.255": true, "127.0.0.0": false,
		"128.0.0.0": true, "168.63.129.15": true, "168.63.129.16": false, "168.63.129.17": true, "169.253.255.255": true, "169.254.0.0": false,
		"169.255.0.0": true, "172.15.255.255": true, "172.16.0.0": false, "172.31.255.255": false, "172.32.0.0": true, "191.255.255.255": true,
		"192.0.0.0": false, "192.0.0.255": false, "192.0.1.0": true, "192.0.2.0": false, "192.0.3.0": true, "192.88.98.255": true, "192.88.99.0": false,
		"192.88.100.0": true, "192.167.255.255": true, "192.168.0.0": false, "192.169.0.0": true, "198.17.255.255": true, "198.18.0.0": false,
		"198.19.255.255": false, "198.20.0.0": true, "198.51.99.255": true, "198.51.100.0": false, "198.51.101.0": true, "203.0.112.255": true,
		"203.0.113.0": false, "203.0.114.0": true, "223.255.255.255": true, "224.0.0.0": false, "239.255.255.255": false, "240.0.0.0": false,
		"255.255.255.255": false, "8.8.8.8": true, "1.1.1.1": true, "134744072": true, "0x8.8.8.8": true, "8.8.2056": true,
		"[2606:4700:4700::1111]": true, "[1fff:ffff::]": false, "[2000::]": true, "[2001:1ff:ffff::]": false, "[2001:200::]": true, "[2001:db7:ffff::]": true,
		"[2001:db8::]": false, "[2001:db9::]": true, "[2001:ffff:ffff::]": true, "[2002::]": false, "[2002:808:808::]": false, "[2003::]": true, "[3ffe:ffff::]": true,
		"[3fff::]": false, "[3fff:fff:ffff::]": false, "[3fff:1000::]": true, "[3fff:ffff::]": true, "[4000::]": false, "[::ffff:8.8.8.8]": true, "[::8.8.8.8]": false,
		"[64:ff9b::8.8.8.8]": false,
	}
	for host, ok := range tests {
		_, err := g.Check(t.Context(), "http://"+host+"/")
		require.Equal(t, ok, err == nil, host)
	}
}

// an address has one spelling, so that what is judged is what is fetched.
func TestParse(t *testing.T) {
	t.Parallel()
	g := guard.New(guard.Config{})
	tests := map[string]string{
		"http://8.8.8.8/":                             "http://8.8.8.8/",
		" HTTP://134744072:8080/a#b ":                 "http://8.8.8.8:8080/a",
		"http://010.8.8.8/":                           "http://8.8.8.8/", // octal, as in browsers
		"https://EXAMPLE.com":                         "https://example.com",
		"https://example.com.:8443/":                  "https://example.com.:8443/",
		"https://my_host.example.com/":                "https://my_host.example.com/",
		"https://한국.com/뉴스?q=오늘 날씨#x":                 "https://xn--3e0b707e.com/%EB%89%B4%EC%8A%A4?q=%EC%98%A4%EB%8A%98%20%EB%82%A0%EC%94%A8",
		"http://example。com/":                         "http://example.com/",
		"http://[2606:4700:4700:0:0:0:0:1111]/?a=%20": "http://[2606:4700:4700::1111]/?a=%20",
		"http://[2606:4700:4700::1111]:8080/":         "http://[2606:4700:4700::1111]:8080/",
		"http://example.com:80/%2e%2e/a%2Fb":          "http://example.com:80/%2e%2e/a%2Fb",
		"http://0xexample.com/":                       "http://0xexample.com/",
		"http://1.2.3.4.example/":                     "http://1.2.3.4.example/",
	}
	for raw, want := range tests {
		u, err := g.Parse(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, u.String(), raw)
	}
	for _, raw := range []string{"http://" + strings.Repeat("a", 64) + ".com/", "http://" + strings.Repeat("a.", 127) + "com/", "http://a.com/" + strings.Repeat("a", 8192)} {
		_, err := g.Parse(raw)
		require.Equal(t, guard.ErrBlocked, err)
	}
}

// one lookup, all of whose addresses must be allowed, and one of which is dialled.
func TestDialConnectsToWhatWasJudged(t *testing.T) {
	t.Parallel()
	w := guardtest.New(t)
	g := w.Guard()
	w.Rebind("rebound.example.com", []string{guardtest.PublicIP}, []string{"127.0.0.1"})
	conn, err := g.DialContext(t.Context(), "tcp", "rebound.example.com:"+w.TrapPort())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Equal(t, 1, w.Lookups("rebound.example.com"))
	_, err = g.DialContext(t.Context(), "tcp", "rebound.example.com:"+w.TrapPort())
	require.Equal(t, guard.ErrBlocked, err)
	_, err = g.DialContext(t.Context(), "udp", guardtest.Host+":80")
	require.Equal(t, guard.ErrBlocked, err)
	require.Empty(t, w.Reached())
}

// an exception is one host by one name, on every port.
func TestAllowHosts(t *testing.T) {
	t.Parallel()
	w := guardtest.New(t)
	w.Resolve("inside.example.com", "10.1.2.3")
	tests := map[string]struct {
		allow []string
		ok    []string
		not   []string
	}{
		"a name": {
			[]string{"localhost"},
			[]string{"http://localhost:PORT/", "http://LOCALHOST:22/", "http://localhost/"},
			[]string{"http://127.0.0.1:PORT/", "http://[::1]:PORT/", "http://localhost.:PORT/", "http://a.localhost:PORT/", "ftp://localhost/", "http://u@localhost/", "http://localhost:0/"},
		},
		"an address": {
			[]string{"127.0.0.1", "not a host/"},
			[]string{"http://127.0.0.1:PORT/", "http://127.1:25/"},
			[]string{"http://localhost:PORT/", "http://127.0.0.2:PORT/", "http://[::ffff:127.0.0.1]:PORT/", "http://[::1]:PORT/"},
		},
		"an address in IPv6": {[]string{"::1"}, []string{"http://[::1]:PORT/", "http://[0::1]:PORT/"}, []string{"http://127.0.0.1:PORT/", "http://[::2]/"}},
		"a private name":     {[]string{"Inside.Example.com"}, []string{"http://inside.example.com:8080/"}, []string{"http://10.1.2.3/", "http://x.inside.example.com/"}},
	}
	for name, tt := range tests {
		g := w.Guard(tt.allow...)
		for _, raw := range tt.ok {
			_, err := g.Check(t.Context(), strings.ReplaceAll(raw, "PORT", w.TrapPort()))
			require.NoError(t, err, "%s: %s", name, raw)
		}
		for _, raw := range tt.not {
			_, err := g.Check(t.Context(), strings.ReplaceAll(raw, "PORT", w.TrapPort()))
			require.Equal(t, guard.ErrBlocked, err, "%s: %s", name, raw)
		}
	}
	conn, err := w.Guard("localhost").DialContext(t.Context(), "tcp", "localhost:"+w.TrapPort())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

// what listens on the machine itself is not for strangers, even at a public address.
func TestOwnAddresses(t *testing.T) {
	t.Parallel()
	w := guardtest.New(t)
	own := []netip.Addr{netip.MustParseAddr(guardtest.PublicIP)}
	var fault error
	g := guard.New(guard.Config{Resolver: w, Own: func() ([]netip.Addr, error) { return own, fault }})
	_, err := g.Check(t.Context(), "http://"+guardtest.PublicIP+"/")
	require.Equal(t, guard.ErrBlocked, err)
	_, err = g.Check(t.Context(), "http://"+guardtest.Host+"/")
	require.Equal(t, guard.ErrBlocked, err)
	own = nil
	_, err = g.Check(t.Context(), "http://"+guardtest.Host+"/")
	require.NoError(t, err)
	fault = errors.New("no answer") // an error of the check refuses
	_, err = g.Check(t.Context(), "http://"+guardtest.Host+"/")
	require.Equal(t, guard.ErrBlocked, err)
	// With what the system says, whatever it is, the check goes on.
	_, err = guard.New(guard.Config{Resolver: w}).Check(t.Context(), "http://"+guardtest.Host+"/")
	require.NoError(t, err)
}

func TestCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the client left")
	cancel(why)
	_, err := guardtest.New(t).Guard().Check(ctx, "http://"+guardtest.Host+"/")
	require.Equal(t, why, err)
}

// resolver answers every lookup with the same addresses.
type resolver []netip.Addr

func (r resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return r, nil }

// the addresses that were judged are tried one after the other; one that does not answer holds up for a quarter of a second.
func TestDialTriesAllAddresses(t *testing.T) {
	t.Parallel()
	all := resolver{netip.MustParseAddr("1.0.0.1"), netip.MustParseAddr("1.0.0.2"), netip.MustParseAddr("1.0.0.3")}
	refused := errors.New("refused")
	tests := map[string]struct {
		dial func(ctx context.Context, address string) error
		err  error
		took time.Duration
	}{
		"the first answers":     {func(context.Context, string) error { return nil }, nil, 0},
		"only the last answers": {func(_ context.Context, a string) error { return unless(a == "1.0.0.3:80", refused) }, nil, 0},
		"none answers":          {func(context.Context, string) error { return refused }, refused, 0},
		"the first never answers": {func(ctx context.Context, a string) error {
			if a == "1.0.0.1:80" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, nil, 250 * time.Millisecond},
		"none ever answers": {func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }, context.DeadlineExceeded, time.Minute},
	}
	for name, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			open := 0
			g := guard.New(guard.Config{Resolver: all, Own: func() ([]netip.Addr, error) { return nil, nil }, Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
				if err := tt.dial(ctx, address); err != nil {
					return nil, err
				}
				open++
				here, there := net.Pipe()
				_ = there.Close()
				return &counted{here, &open}, nil
			}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			conn, err := g.DialContext(ctx, "tcp", "many.example.com:80")
			require.ErrorIs(t, err, tt.err, name)
			require.Equal(t, tt.took, time.Since(began), name)
			if conn != nil {
				require.Equal(t, 1, open, name)
				require.NoError(t, conn.Close())
			}
			require.Zero(t, open, name)
		})
	}
}

func unless(ok bool, err error) error {
	if ok {
		return nil
	}
	return err
}

type counted struct {
	net.Conn
	open *int
}

func (c *counted) Close() error {
	*c.open--
	return c.Conn.Close()
}

// Whatever is let through by its number is public, and reads the same when it is read again.
func FuzzParse(f *testing.F) {
	for _, raw := range guardtest.New(f).Addresses() {
		f.Add(raw)
	}
	f.Add("https://한국.com/뉴스?q=오늘#x")
	f.Add("http://0x8.010.2056/")
	f.Fuzz(func(t *testing.T, raw string) {
		g := guard.New(guard.Config{})
		u, err := g.Parse(raw)
		if err != nil {
			require.Equal(t, guard.ErrBlocked, err)
			return
		}
		again, err := g.Parse(u.String())
		require.NoError(t, err, u.String())
		require.Equal(t, u.String(), again.String())
		plain, err := url.Parse(u.String())
		require.NoError(t, err)
		require.Equal(t, u.Host, plain.Host)
		require.Nil(t, u.User)
		require.Contains(t, []string{"http", "https"}, u.Scheme)
		host := u.Hostname()
		if addr, err := netip.ParseAddr(host); err == nil {
			require.True(t, addr.Unmap().IsGlobalUnicast() && !addr.Unmap().IsPrivate(), host)
			return
		}
		// A name is none that anybody reads as a number.
		labels := strings.Split(strings.TrimSuffix(host, "."), ".")
		last := labels[len(labels)-1]
		require.NotEmpty(t, strings.Trim(last, "0123456789"), host)
		require.Empty(t, strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-_."), host)
	})
}

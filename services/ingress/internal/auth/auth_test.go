package auth_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"hydrallm/services/ingress/internal/auth"
)

const (
	keyOne = "Client-Key-One"
	keyTwo = "Client-Key-Two"
)

// AUTH-01, R-382.
func TestClients(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		header [][2]string
		want   bool
	}{
		"bearer":                         {[][2]string{{"Authorization", "Bearer " + keyOne}}, true},
		"the other key":                  {[][2]string{{"Authorization", "Bearer " + keyTwo}}, true},
		"scheme in lower case":           {[][2]string{{"Authorization", "bearer " + keyOne}}, true},
		"two spaces":                     {[][2]string{{"Authorization", "BEARER  " + keyOne + " "}}, true},
		"a tab":                          {[][2]string{{"Authorization", "Bearer\t" + keyOne}}, true},
		"x-api-key":                      {[][2]string{{"x-api-key", keyOne}}, true},
		"api-key":                        {[][2]string{{"API-Key", keyOne}}, true},
		"all three":                      {[][2]string{{"api-key", keyOne}, {"x-api-key", keyOne}, {"Authorization", "Bearer " + keyOne}}, true},
		"empty api-key":                  {[][2]string{{"api-key", ""}, {"x-api-key", keyOne}}, false},
		"api-key and another":            {[][2]string{{"api-key", keyOne}, {"x-api-key", keyTwo}}, false},
		"the same key twice":             {[][2]string{{"Authorization", "Bearer " + keyOne}, {"x-api-key", keyOne}}, true},
		"nothing":                        {nil, false},
		"other scheme":                   {[][2]string{{"Authorization", "Basic " + keyOne}}, false},
		"scheme only":                    {[][2]string{{"Authorization", "Bearer"}}, false},
		"scheme and a space":             {[][2]string{{"Authorization", "Bearer "}}, false},
		"no scheme":                      {[][2]string{{"Authorization", keyOne}}, false},
		"glued":                          {[][2]string{{"Authorization", "Bearer" + keyOne}}, false},
		"wrong case of the key":          {[][2]string{{"Authorization", "Bearer client-key-one"}}, false},
		"part of a key":                  {[][2]string{{"Authorization", "Bearer " + keyOne[:8]}}, false},
		"more than a key":                {[][2]string{{"Authorization", "Bearer " + keyOne + "x"}}, false},
		"empty x-api-key":                {[][2]string{{"x-api-key", ""}}, false},
		"right and wrong":                {[][2]string{{"Authorization", "Bearer " + keyOne}, {"x-api-key", "wrong"}}, false},
		"wrong and right":                {[][2]string{{"Authorization", "Bearer wrong"}, {"x-api-key", keyOne}}, false},
		"two right ones":                 {[][2]string{{"Authorization", "Bearer " + keyOne}, {"x-api-key", keyTwo}}, false},
		"two right ones in one name":     {[][2]string{{"Authorization", "Bearer " + keyOne}, {"Authorization", "Bearer " + keyTwo}}, false},
		"wrong in between":               {[][2]string{{"x-api-key", keyOne}, {"x-api-key", "wrong"}, {"x-api-key", keyOne}}, false},
		"right key and an empty second":  {[][2]string{{"x-api-key", keyOne}, {"Authorization", ""}}, false},
		"right key and another's scheme": {[][2]string{{"x-api-key", keyOne}, {"Authorization", "Basic dTpw"}}, false},
	}
	clients := auth.NewClients([]string{keyOne, keyTwo})
	open := auth.NewClients(nil)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h fasthttp.RequestHeader
			for _, kv := range tt.header {
				h.Add(kv[0], kv[1])
			}
			require.Equal(t, tt.want, clients.Allow(&h))
			require.True(t, open.Allow(&h), "without keys everyone may call")
		})
	}
}

var (
	here  = netip.MustParseAddr("192.0.2.1")
	there = netip.MustParseAddr("192.0.2.2")
)

// R-331, ADMIN-01..03.
func TestAdmin(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key, given string
		debug      bool
		want       int
	}{
		"right":                      {"secret", "secret", false, 0},
		"wrong":                      {"secret", "other", false, http.StatusUnauthorized},
		"longer":                     {"secret", "secret1", false, http.StatusUnauthorized},
		"other case":                 {"secret", "Secret", false, http.StatusUnauthorized},
		"missing":                    {"secret", "", false, http.StatusUnauthorized},
		"not configured":             {"", "", false, http.StatusServiceUnavailable},
		"not configured, some key":   {"", "any", false, http.StatusServiceUnavailable},
		"debug without a key":        {"", "", true, 0},
		"debug with a key, right":    {"secret", "secret", true, 0},
		"debug with a key, wrong":    {"secret", "other", true, http.StatusUnauthorized},
		"debug with a key, missing":  {"secret", "", true, http.StatusUnauthorized},
		"debug does not ask for one": {"", "any", true, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			admin := auth.NewAdmin(tt.key, tt.debug, slog.New(slog.NewTextHandler(&out, nil)))
			f := admin.Check([]byte(tt.given), here, time.Now())
			if tt.want == 0 {
				require.Nil(t, f)
				return
			}
			require.Equal(t, tt.want, f.Status())
			if tt.given != "" {
				require.NotContains(t, out.String()+f.Error(), tt.given, "the value is never shown")
			}
		})
	}
}

// failed attempts are limited per address, and a right key does not help while they are.
func TestFailedAttemptsAreLimited(t *testing.T) {
	t.Parallel()
	admin := auth.NewAdmin("secret", false, slog.New(slog.DiscardHandler))
	now := time.Now()
	wrong, right := []byte("wrong"), []byte("secret")
	refused := 0
	for range 100 {
		if f := admin.Check(wrong, here, now); f.Status() == http.StatusTooManyRequests {
			refused++
			require.Positive(t, f.RetryAfter)
		}
	}
	require.Equal(t, 70, refused)
	require.Equal(t, http.StatusTooManyRequests, admin.Check(right, here, now).Status())
	require.Nil(t, admin.Check(right, there, now), "others are not affected")
	require.Equal(t, http.StatusUnauthorized, admin.Check(nil, here, now).Status(), "no key is no attempt")
	now = now.Add(3 * time.Second)
	require.Equal(t, http.StatusUnauthorized, admin.Check(wrong, here, now).Status())
	now = now.Add(3 * time.Second)
	require.Nil(t, admin.Check(right, here, now))
}

// One subscriber has many IPv6 addresses; many subscribers must not fill the memory.
func TestAttemptsByNetwork(t *testing.T) {
	t.Parallel()
	admin := auth.NewAdmin("secret", false, slog.New(slog.DiscardHandler))
	now := time.Now()
	for i := range 40 {
		_ = admin.Check([]byte("wrong"), netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i+1)), now)
	}
	require.Equal(t, http.StatusTooManyRequests, admin.Check([]byte("secret"), netip.MustParseAddr("2001:db8::ffff"), now).Status())
	require.Nil(t, admin.Check([]byte("secret"), netip.MustParseAddr("2001:db8:0:1::1"), now))
	for i := range 10000 {
		_ = admin.Check([]byte("wrong"), netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), now)
	}
	require.Equal(t, http.StatusTooManyRequests, admin.Check([]byte("secret"), netip.MustParseAddr("2001:db8::1"), now).Status(),
		"the guilty are not forgotten for the sake of others")
}

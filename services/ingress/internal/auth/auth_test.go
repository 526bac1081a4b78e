package auth_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"hydrallm/services/ingress/internal/auth"
	"hydrallm/services/ingress/internal/clientkey"
	"hydrallm/shared/contract"
)

const (
	keyOne   = "Client-Key-One"
	keyTwo   = "Client-Key-Two"
	keyAdmin = "Admin-Key"
)

// AUTH-01, R-382, R-405.
func TestClients(t *testing.T) {
	t.Parallel()
	principal := func(key string) string { return fmt.Sprintf("k:%x", sha256.Sum256([]byte(key)))[:len("k:")+16] }
	one, two := principal(keyOne), principal(keyTwo)
	tests := map[string]struct {
		header [][2]string
		want   string // the principal, "" = refused
	}{
		"bearer":                         {[][2]string{{"Authorization", "Bearer " + keyOne}}, one},
		"the other key":                  {[][2]string{{"Authorization", "Bearer " + keyTwo}}, two},
		"scheme in lower case":           {[][2]string{{"Authorization", "bearer " + keyOne}}, one},
		"two spaces":                     {[][2]string{{"Authorization", "BEARER  " + keyOne + " "}}, one},
		"a tab":                          {[][2]string{{"Authorization", "Bearer\t" + keyOne}}, one},
		"x-api-key":                      {[][2]string{{"x-api-key", keyOne}}, one},
		"api-key":                        {[][2]string{{"API-Key", keyOne}}, one},
		"all three":                      {[][2]string{{"api-key", keyOne}, {"x-api-key", keyOne}, {"Authorization", "Bearer " + keyOne}}, one},
		"empty api-key":                  {[][2]string{{"api-key", ""}, {"x-api-key", keyOne}}, ""},
		"api-key and another":            {[][2]string{{"api-key", keyOne}, {"x-api-key", keyTwo}}, ""},
		"the same key twice":             {[][2]string{{"Authorization", "Bearer " + keyOne}, {"x-api-key", keyOne}}, one},
		"the admin key":                  {[][2]string{{"Authorization", "Bearer " + keyAdmin}}, contract.PrincipalAdmin},
		"the admin key twice":            {[][2]string{{"Authorization", "Bearer " + keyAdmin}, {"x-api-key", keyAdmin}}, contract.PrincipalAdmin},
		"the admin key and a client's":   {[][2]string{{"Authorization", "Bearer " + keyAdmin}, {"x-api-key", keyOne}}, ""},
		"nothing":                        {nil, ""},
		"other scheme":                   {[][2]string{{"Authorization", "Basic " + keyOne}}, ""},
		"scheme only":                    {[][2]string{{"Authorization", "Bearer"}}, ""},
		"scheme and a space":             {[][2]string{{"Authorization", "Bearer "}}, ""},
		"no scheme":                      {[][2]string{{"Authorization", keyOne}}, ""},
		"glued":                          {[][2]string{{"Authorization", "Bearer" + keyOne}}, ""},
		"wrong case of the key":          {[][2]string{{"Authorization", "Bearer client-key-one"}}, ""},
		"part of a key":                  {[][2]string{{"Authorization", "Bearer " + keyOne[:8]}}, ""},
		"more than a key":                {[][2]string{{"Authorization", "Bearer " + keyOne + "x"}}, ""},
		"empty x-api-key":                {[][2]string{{"x-api-key", ""}}, ""},
		"right and wrong":                {[][2]string{{"Authorization", "Bearer " + keyOne}, {"x-api-key", "wrong"}}, ""},
		"wrong and right":                {[][2]string{{"Authorization", "Bearer wrong"}, {"x-api-key", keyOne}}, ""},
		"two right ones":                 {[][2]string{{"Authorization", "Bearer " + keyOne}, {"x-api-key", keyTwo}}, ""},
		"two right ones in one name":     {[][2]string{{"Authorization", "Bearer " + keyOne}, {"Authorization", "Bearer " + keyTwo}}, ""},
		"wrong in between":               {[][2]string{{"x-api-key", keyOne}, {"x-api-key", "wrong"}, {"x-api-key", keyOne}}, ""},
		"right key and an empty second":  {[][2]string{{"x-api-key", keyOne}, {"Authorization", ""}}, ""},
		"right key and another's scheme": {[][2]string{{"x-api-key", keyOne}, {"Authorization", "Basic dTpw"}}, ""},
	}
	admin := auth.NewAdmin(keyAdmin, false, slog.New(slog.DiscardHandler))
	clients := auth.NewClients([]string{keyOne, keyTwo}, none, auth.Auto, admin)
	open := auth.NewClients(nil, none, auth.Auto, admin)
	sealed := auth.NewClients([]string{keyOne, keyTwo}, none, auth.Auto, auth.NewAdmin("", true, slog.New(slog.DiscardHandler)))
	from := 0 // an address for each case, because wrong keys are limited by it
	for name, tt := range tests {
		from++
		here := netip.AddrFrom4([4]byte{192, 0, 3, byte(from)})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h fasthttp.RequestHeader
			for _, kv := range tt.header {
				h.Add(kv[0], kv[1])
			}
			got, f := clients.Identify(&h, here, time.Now())
			require.Equal(t, tt.want, got.Principal)
			require.Equal(t, tt.want != "", f == nil)
			got, f = open.Identify(&h, here, time.Now())
			require.Nil(t, f, "without keys everyone may call")
			require.Equal(t, tt.want == contract.PrincipalAdmin, got.Principal == contract.PrincipalAdmin)
			require.Equal(t, tt.want != contract.PrincipalAdmin, got.Principal == contract.PrincipalAnonymous)
			_, f = sealed.Identify(&h, here, time.Now())
			require.Equal(t, tt.want != "" && tt.want != contract.PrincipalAdmin, f == nil, "without an admin key it opens nothing")
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

// neither the admin key nor a key of the configuration can be guessed on the routes of clients, and what clients do does not close the
// routes of operators. A wrong key that is sent again and again is no guess. Named keys, which nobody can guess, go on.
func TestGuessingAsAClient(t *testing.T) {
	t.Parallel()
	header := func(key string) *fasthttp.RequestHeader {
		var h fasthttp.RequestHeader
		h.Set("Authorization", "Bearer "+key)
		return &h
	}
	for name, tt := range map[string]struct {
		keys  []string
		named auth.Named
		open  bool
	}{
		"with client keys": {[]string{keyOne}, none, false},
		"with named keys":  {nil, only(keyNamed), false},
		"without":          {nil, none, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := auth.NewAdmin(keyAdmin, false, slog.New(slog.DiscardHandler))
			clients := auth.NewClients(tt.keys, tt.named, auth.Auto, admin)
			now := time.Now()
			for range 1000 {
				_, _ = clients.Identify(header("the same"), here, now)
			}
			got, _ := clients.Identify(header(keyAdmin), here, now)
			require.Equal(t, contract.PrincipalAdmin, got.Principal)
			for i := range 100 {
				_, _ = clients.Identify(header(fmt.Sprint("guess", i)), here, now)
			}
			for _, key := range []string{keyAdmin, keyOne, "guess"} {
				got, f := clients.Identify(header(key), here, now)
				if tt.open {
					require.Equal(t, contract.PrincipalAnonymous, got.Principal)
					continue
				}
				require.Equal(t, http.StatusTooManyRequests, f.Status())
				require.Positive(t, f.RetryAfter)
			}
			if got, f := clients.Identify(header(keyNamed), here, now); tt.named.Any() {
				require.Nil(t, f)
				require.Equal(t, "ck_1", got.Principal)
			}
			require.Nil(t, admin.Check([]byte(keyAdmin), here, now))
			got, _ = clients.Identify(header(keyAdmin), there, now)
			require.Equal(t, contract.PrincipalAdmin, got.Principal, "others are not affected")
		})
	}
}

// keyNamed is a named key.
const keyNamed = "hk-a-named-key"

// book is a set of named keys.
type book map[clientkey.Digest]*clientkey.Key

func (b book) Find(sum *clientkey.Digest) *clientkey.Key { return b[*sum] }
func (b book) Any() bool                                 { return len(b) > 0 }

var none = book{}

func only(key string) book { return bookOf(key, clientkey.Key{}) }

func bookOf(key string, k clientkey.Key) book {
	k.ID = "ck_1"
	return book{sha256.Sum256([]byte(key)): &k}
}

// who is let in by which key, whatever the configuration has.
func TestAccess(t *testing.T) {
	t.Parallel()
	now := time.Now()
	live := only(keyNamed)
	revoked, expired := bookOf(keyNamed, clientkey.Key{RevokedAt: now}), bookOf(keyNamed, clientkey.Key{ExpiresAt: now})
	plain := []string{keyOne}
	plainPrincipal := fmt.Sprintf("k:%x", sha256.Sum256([]byte(keyOne)))[:len("k:")+16]
	tests := map[string]struct {
		keys   []string
		named  auth.Named
		access auth.Access
		key    string
		want   string // principal, or the code of the fault
	}{
		"nothing":                      {nil, none, auth.Auto, "", contract.PrincipalAnonymous},
		"nothing, some key":            {nil, none, auth.Auto, "dummy", contract.PrincipalAnonymous},
		"always keys":                  {nil, none, auth.Keys, "", "unauthorized"},
		"always keys, some key":        {nil, none, auth.Keys, "dummy", "unauthorized"},
		"named":                        {nil, live, auth.Auto, keyNamed, "ck_1"},
		"named, without":               {nil, live, auth.Auto, "", "unauthorized"},
		"named, wrong":                 {nil, live, auth.Auto, keyNamed + "x", "unauthorized"},
		"named, the admin key":         {nil, live, auth.Auto, keyAdmin, contract.PrincipalAdmin},
		"named beside plain":           {plain, live, auth.Auto, keyNamed, "ck_1"},
		"plain beside named":           {plain, live, auth.Auto, keyOne, plainPrincipal},
		"revoked":                      {nil, revoked, auth.Auto, keyNamed, "key_revoked"},
		"the last one revoked":         {nil, revoked, auth.Auto, "", "unauthorized"},
		"expired":                      {nil, expired, auth.Auto, keyNamed, "key_expired"},
		"the last one expired":         {nil, expired, auth.Auto, "", "unauthorized"},
		"open, without":                {plain, live, auth.Open, "", contract.PrincipalAnonymous},
		"open, some key":               {plain, live, auth.Open, "dummy", contract.PrincipalAnonymous},
		"open, plain":                  {plain, live, auth.Open, keyOne, plainPrincipal},
		"open, named":                  {plain, live, auth.Open, keyNamed, "ck_1"},
		"open, but revoked":            {plain, revoked, auth.Open, keyNamed, "key_revoked"},
		"a mode that is not there yet": {nil, none, "", "", contract.PrincipalAnonymous},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clients := auth.NewClients(tt.keys, tt.named, tt.access, auth.NewAdmin(keyAdmin, false, slog.New(slog.DiscardHandler)))
			var h fasthttp.RequestHeader
			if tt.key != "" {
				h.Set("X-Api-Key", tt.key)
			}
			got, f := clients.Identify(&h, here, now)
			if f != nil {
				require.Equal(t, http.StatusUnauthorized, f.Status())
				require.Equal(t, tt.want, f.PublicCode())
				return
			}
			require.Equal(t, tt.want, got.Principal)
		})
	}
}

func BenchmarkIdentify(b *testing.B) {
	keys := book{}
	for i := range 1000 {
		keys[sha256.Sum256(fmt.Append(nil, i))] = &clientkey.Key{ID: "ck_x"}
	}
	keys[sha256.Sum256([]byte(keyNamed))] = &clientkey.Key{ID: "ck_1"}
	var h fasthttp.RequestHeader
	h.Set("Authorization", "Bearer "+keyNamed)
	for name, named := range map[string]auth.Named{"no keys": none, "1000 named keys": keys} {
		b.Run(name, func(b *testing.B) {
			clients := auth.NewClients(nil, named, auth.Auto, auth.NewAdmin("", false, slog.New(slog.DiscardHandler)))
			now := time.Now()
			b.ReportAllocs()
			for b.Loop() {
				if _, f := clients.Identify(&h, here, now); f != nil {
					b.Fatal(f)
				}
			}
		})
	}
}

// Package auth decides who may call: clients with keys of their own, and operators with the admin key. Keys are compared in constant time
// and kept only as digests.
package auth

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/contract"
)

type digest = [sha256.Size]byte

// Clients knows the keys of clients. The admin key opens their routes too.
type Clients struct {
	keys  []digest
	names []string // principal of each key
	admin *Admin

	attempts attempts // to guess the admin key here
	mu       sync.Mutex
	wrong    [256]digest // keys that were refused lately, by their first byte
}

// NewClients makes a check for the given keys. Without keys everyone may call.
func NewClients(keys []string, admin *Admin) *Clients {
	c := &Clients{admin: admin}
	for _, k := range keys {
		sum := sha256.Sum256([]byte(k))
		c.keys = append(c.keys, sum)
		c.names = append(c.names, "k:"+hex.EncodeToString(sum[:8]))
	}
	return c
}

// keyHeaders carry a key as it is: Anthropic's clients send the first one, Azure's the second.
var keyHeaders = [...]string{"X-Api-Key", "Api-Key"}

// Identify says who calls: the principal of the key in Authorization, x-api-key or api-key. It is false when no key is there that is known, or not
// every credential is the same key (AUTH-01c).
func (c *Clients) Identify(h *fasthttp.RequestHeader, from netip.Addr, now time.Time) (principal string, ok bool) {
	open := len(c.keys) == 0
	if key := credential(h); len(key) > 0 && (!open || c.admin.set) {
		if principal, ok = c.known(key, from, now); ok {
			return principal, true
		}
	}
	if open {
		return contract.PrincipalAnonymous, true
	}
	return "", false
}

// credential gives the key of a request, nil when there is none or there are several.
func credential(h *fasthttp.RequestHeader) []byte {
	var key []byte
	same := true
	take := func(k []byte) {
		same = same && len(k) > 0 && (key == nil || bytes.Equal(key, k))
		key = k
	}
	for _, v := range h.PeekAll(fasthttp.HeaderAuthorization) {
		take(bearer(v))
	}
	for _, name := range keyHeaders {
		for _, v := range h.PeekAll(name) {
			take(bytes.TrimSpace(v))
		}
	}
	if !same {
		return nil
	}
	return key
}

// known looks at all keys, so that the time does not tell which one was near. From an address that guesses, the admin key is not taken.
func (c *Clients) known(key []byte, from netip.Addr, now time.Time) (principal string, ok bool) {
	sum := sha256.Sum256(key)
	for i := range c.keys {
		if subtle.ConstantTimeCompare(c.keys[i][:], sum[:]) == 1 {
			principal = c.names[i]
		}
	}
	switch {
	case principal != "":
		return principal, true
	case c.admin.is(&sum):
		return contract.PrincipalAdmin, c.attempts.wait(from, now) == 0
	case c.admin.set && c.isNew(&sum):
		c.attempts.failed(from, now)
	}
	return "", false
}

// isNew says whether a wrong key was not refused lately: one that a client sends again and again is no guess.
func (c *Clients) isNew(sum *digest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	slot := &c.wrong[sum[0]]
	if *slot == *sum {
		return false
	}
	*slot = *sum
	return true
}

// bearer gives the token of a Bearer credential, or an empty slice.
func bearer(v []byte) []byte {
	const scheme = "bearer"
	v = bytes.TrimSpace(v)
	if len(v) <= len(scheme) || !bytes.EqualFold(v[:len(scheme)], []byte(scheme)) || v[len(scheme)] != ' ' && v[len(scheme)] != '\t' {
		return []byte{}
	}
	return bytes.TrimSpace(v[len(scheme):])
}

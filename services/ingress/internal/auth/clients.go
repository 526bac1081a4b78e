// Package auth decides who may call: clients with keys of their own, and operators with the admin key. Keys are compared in constant time
// and kept only as digests.
package auth

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"

	"github.com/valyala/fasthttp"
)

type digest = [sha256.Size]byte

// Clients knows the keys of clients.
type Clients struct{ keys []digest }

// NewClients makes a check for the given keys. Without keys everyone may call.
func NewClients(keys []string) *Clients {
	c := &Clients{}
	for _, k := range keys {
		c.keys = append(c.keys, sha256.Sum256([]byte(k)))
	}
	return c
}

// Open says that no keys are configured.
func (c *Clients) Open() bool { return len(c.keys) == 0 }

// keyHeaders carry a key as it is: Anthropic's clients send the first one, Azure's the second.
var keyHeaders = [...]string{"X-Api-Key", "Api-Key"}

// Allow says whether the request carries a key, in Authorization, x-api-key or api-key. Every credential that it carries must be the same key
// (AUTH-01c).
func (c *Clients) Allow(h *fasthttp.RequestHeader) bool {
	if c.Open() {
		return true
	}
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
	return key != nil && same && c.known(key)
}

// known looks at all keys, so that the time does not tell which one was near.
func (c *Clients) known(key []byte) bool {
	sum := sha256.Sum256(key)
	found := 0
	for i := range c.keys {
		found |= subtle.ConstantTimeCompare(c.keys[i][:], sum[:])
	}
	return found == 1
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

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

	"hydrallm/services/ingress/internal/clientkey"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
)

type digest = [sha256.Size]byte

// Access says whom the routes of clients let in.
type Access string

// Kinds of access.
const (
	Auto Access = "auto" // everybody, as long as no key was ever configured or made
	Keys Access = "keys" // who has a key
	Open Access = "open" // everybody; a key says who asks, and what for
)

// Named are the keys that are made while the gateway runs; *clientkey.Book is one.
type Named interface {
	// Find gives the key with a hash, nil if there is none.
	Find(sum *clientkey.Digest) *clientkey.Key
	// Any says whether there ever was a key.
	Any() bool
}

// Caller is who calls.
type Caller struct {
	Principal string
	Key       *clientkey.Key // nil = it is no named key
}

// Clients knows the keys of clients. The admin key opens their routes too.
type Clients struct {
	keys   []digest
	names  []string // principal of each key
	named  Named
	access Access
	admin  *Admin

	attempts attempts // to guess a key here
	mu       sync.Mutex
	wrong    [256]digest // keys that were refused lately, by their first byte
}

// NewClients makes a check for the given keys and the named ones.
func NewClients(keys []string, named Named, access Access, admin *Admin) *Clients {
	c := &Clients{named: named, access: access, admin: admin}
	for _, k := range keys {
		sum := sha256.Sum256([]byte(k))
		c.keys = append(c.keys, sum)
		c.names = append(c.names, "k:"+hex.EncodeToString(sum[:8]))
	}
	return c
}

// Open says whether everybody may call. A gateway that ever had a named key does not open by itself when the last one is revoked.
func (c *Clients) Open() bool {
	return c.access == Open || c.access != Keys && len(c.keys) == 0 && !c.named.Any()
}

// keyHeaders carry a key as it is: Anthropic's clients send the first one, Azure's the second.
var keyHeaders = [...]string{"X-Api-Key", "Api-Key"}

// Identify says who calls: by the key in Authorization, x-api-key or api-key. The fault is what to answer when no key is there that is known and counts, or
// not every credential is the same key (AUTH-01c).
func (c *Clients) Identify(h *fasthttp.RequestHeader, from netip.Addr, now time.Time) (Caller, *fault.Fault) {
	open := c.Open()
	if open && !c.admin.set && len(c.keys) == 0 && !c.named.Any() {
		return Caller{Principal: contract.PrincipalAnonymous}, nil
	}
	if key := credential(h); len(key) > 0 {
		who, f := c.known(key, from, now)
		if f == nil || !open || who.Key != nil {
			return who, f
		}
	}
	if open {
		return Caller{Principal: contract.PrincipalAnonymous}, nil
	}
	return Caller{}, fault.New(fault.Unauthorized, "The API key is missing or wrong")
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

// known says whose key it is. It looks at all keys of the configuration, so that the time does not tell which one was near. From an address that guesses,
// only named keys are taken, which nobody can guess.
func (c *Clients) known(key []byte, from netip.Addr, now time.Time) (Caller, *fault.Fault) {
	sum := sha256.Sum256(key)
	if k := c.named.Find(&sum); k != nil {
		return Caller{Principal: k.ID, Key: k}, dead(k, now)
	}
	var who Caller
	for i := range c.keys {
		if subtle.ConstantTimeCompare(c.keys[i][:], sum[:]) == 1 {
			who.Principal = c.names[i]
		}
	}
	if who.Principal == "" && c.admin.is(&sum) {
		who.Principal = contract.PrincipalAdmin
	}
	if wait := c.attempts.wait(from, now); wait > 0 {
		return Caller{}, &fault.Fault{
			Kind: fault.RateLimited, Code: "too_many_attempts", Message: "Too many wrong API keys from this address", RetryAfter: wait,
		}
	}
	if who.Principal != "" {
		return who, nil
	}
	if c.isNew(&sum) {
		c.attempts.failed(from, now)
	}
	return Caller{}, fault.New(fault.Unauthorized, "The API key is missing or wrong")
}

// dead gives the fault of a named key that counts no longer.
func dead(k *clientkey.Key, now time.Time) *fault.Fault {
	switch {
	case k.Revoked():
		return &fault.Fault{Kind: fault.Unauthorized, Code: "key_revoked", Message: "The API key has been revoked"}
	case k.Expired(now):
		return &fault.Fault{Kind: fault.Unauthorized, Code: "key_expired", Message: "The API key has expired"}
	}
	return nil
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

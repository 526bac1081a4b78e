// Package clientkey has the named keys of clients: who may ask, for what, how often and for how much. They are made and changed while the
// gateway runs. The bucket of client keys is the truth; every ingress follows it, so that to know a key costs no I/O and a change counts everywhere at
// once.
package clientkey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"hydrallm/shared/contract"
)

// Prefix begins every named key, so that programs that look for lost secrets know one.
const Prefix = "hk-"

// Digest is the SHA-256 of a key, the only thing that is kept of it. A key has 256 random bits, so that no slower hash is needed.
type Digest = [sha256.Size]byte

// Key is a named key. It is never changed: a change makes another one.
type Key struct {
	ID        string            `json:"id"` // the principal; rotation keeps it
	Name      string            `json:"name"`
	Hash      []byte            `json:"hash"`                     // a Digest
	Models    []string          `json:"allowed_models,omitempty"` // none = all; a "*" at the end stands for anything
	Limits    Limits            `json:"limits,omitzero"`
	Priority  contract.Priority `json:"priority,omitempty"` // the highest that its requests can have; "" = any
	Budget    *Budget           `json:"budget,omitempty"`   // nil = none
	ExpiresAt time.Time         `json:"expires_at,omitzero"`
	CreatedAt time.Time         `json:"created_at"`
	RevokedAt time.Time         `json:"revoked_at,omitzero"`
}

// Limits are what a key may ask for in a minute; 0 is no limit.
type Limits struct {
	Requests int64 `json:"rpm,omitempty"`
	Tokens   int64 `json:"tpm,omitempty"`
}

// Unit is what a budget counts.
type Unit string

// Units of budgets.
const (
	Tokens Unit = "tokens"
	Money  Unit = "money" // in the currency of the prices
)

// Period is the time after which a budget begins anew, in the time zone of the gateway.
type Period string

// Periods of budgets.
const (
	Day   Period = "day"
	Month Period = "month"
)

// Budget is what a key may use in a period.
type Budget struct {
	Amount float64 `json:"amount"`
	Unit   Unit    `json:"unit"`
	Period Period  `json:"period"`
}

// Bounds of the period that holds a time, in a time zone.
func (p Period) Bounds(now time.Time, zone *time.Location) (from, to time.Time) {
	y, m, d := now.In(zone).Date()
	if p == Month {
		return time.Date(y, m, 1, 0, 0, 0, 0, zone), time.Date(y, m+1, 1, 0, 0, 0, 0, zone)
	}
	return time.Date(y, m, d, 0, 0, 0, 0, zone), time.Date(y, m, d+1, 0, 0, 0, 0, zone)
}

// Revoked says whether the key has been taken back.
func (k *Key) Revoked() bool { return !k.RevokedAt.IsZero() }

// Expired says whether the time of the key is over.
func (k *Key) Expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

// Allows says whether the key may ask for a model by this name.
func (k *Key) Allows(model string) bool {
	return len(k.Models) == 0 || slices.ContainsFunc(k.Models, func(allowed string) bool {
		begin, rest := strings.CutSuffix(allowed, "*")
		return model == allowed || rest && strings.HasPrefix(model, begin)
	})
}

// newSecret makes a key, which only whoever made it gets to see, and its hash.
func newSecret() (secret string, hash []byte) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	secret = Prefix + base64.RawURLEncoding.EncodeToString(random[:])
	sum := sha256.Sum256([]byte(secret))
	return secret, sum[:]
}

// newID makes an id that says nothing of the key.
func newID() string {
	const letters = 16
	return contract.NamedPrincipal + strings.ToLower(rand.Text()[:letters])
}

// isID says whether a text may be an id.
func isID(text string) bool {
	rest, ok := strings.CutPrefix(text, contract.NamedPrincipal)
	return ok && rest != "" && len(rest) <= 32 && !strings.ContainsFunc(rest, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

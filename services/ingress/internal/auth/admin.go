package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/netip"
	"time"

	"hydrallm/shared/fault"
)

// Admin guards the admin routes.
type Admin struct {
	key      digest
	set      bool
	debug    bool
	attempts attempts
	log      *slog.Logger
}

// NewAdmin makes a guard. Without a key the routes are closed, or open to everyone in debug mode.
func NewAdmin(key string, debug bool, log *slog.Logger) *Admin {
	return &Admin{key: sha256.Sum256([]byte(key)), set: key != "", debug: debug, log: log}
}

// Check gives nil when the caller may go on, or the fault to answer. key is what the request carries, or nothing.
func (a *Admin) Check(key []byte, from netip.Addr, now time.Time) *fault.Fault {
	switch {
	case a.Open():
		return nil
	case !a.set:
		return &fault.Fault{
			Kind: fault.Unavailable, Code: "admin_disabled",
			Message: "The admin routes are closed because no admin key is configured (server.admin_key or ADMIN_API_KEY)",
		}
	case len(key) == 0:
		return fault.New(fault.Unauthorized, "The X-Admin-Key header is missing")
	}
	if wait := a.attempts.wait(from, now); wait > 0 {
		return &fault.Fault{
			Kind: fault.RateLimited, Code: "too_many_attempts", Message: "Too many wrong admin keys from this address", RetryAfter: wait,
		}
	}
	if sum := sha256.Sum256(key); a.is(&sum) {
		return nil
	}
	a.attempts.failed(from, now)
	a.log.Warn("wrong admin key", slog.String("from", from.String()))
	return fault.New(fault.Unauthorized, "The admin key is wrong")
}

// Open says that everybody may go on, because there is no key and that is wanted.
func (a *Admin) Open() bool { return !a.set && a.debug }

// is says whether a key with this digest is the admin key.
func (a *Admin) is(sum *digest) bool {
	return a.set && subtle.ConstantTimeCompare(sum[:], a.key[:]) == 1
}

package fault

import (
	"strconv"
	"time"

	"hydrallm/shared/contract"
)

// MaxRetryAfter is the longest wait that a client is told in Retry-After. Some sleep for whatever stands there.
const MaxRetryAfter = time.Minute

// Never is the RetryAfter of a fault that no wait mends.
const Never time.Duration = -1

// Head gives status and headers of the HTTP answer that a client gets in place of its own, whatever protocol it speaks. The body, which
// the protocol of the client decides, is JSON. Retry-After is in whole seconds, rounded up, so that nobody comes back too early; for a wait that
// is longer than MaxRetryAfter, or Never, the client is told not to try again by itself, in the word that OpenAI's SDKs know.
func (f *Fault) Head() contract.Head {
	head := contract.Head{Status: f.Status(), Header: [][2]string{{"Content-Type", "application/json"}}}
	switch {
	case f.RetryAfter == Never, f.RetryAfter > MaxRetryAfter:
		head.Header = append(head.Header, [2]string{"X-Should-Retry", "false"})
	case f.RetryAfter <= 0:
	default:
		head.Header = append(head.Header, [2]string{"Retry-After", strconv.FormatInt(f.Seconds(), 10)})
	}
	return head
}

// Seconds is the wait in whole seconds, rounded up; 0 when none is stated, or none helps.
func (f *Fault) Seconds() int64 {
	if f.RetryAfter <= 0 {
		return 0
	}
	return int64((f.RetryAfter-1)/time.Second) + 1
}

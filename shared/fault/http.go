package fault

import (
	"strconv"
	"time"

	"hydrallm/shared/contract"
)

// Head gives status and headers of the HTTP answer that a client gets in place of its own, whatever protocol it speaks. The body, which
// the protocol of the client decides, is JSON. Retry-After is in whole seconds, rounded up, so that nobody comes back too early.
func (f *Fault) Head() contract.Head {
	head := contract.Head{Status: f.Status(), Header: [][2]string{{"Content-Type", "application/json"}}}
	if f.RetryAfter > 0 {
		seconds := int64(f.RetryAfter / time.Second)
		if f.RetryAfter%time.Second > 0 {
			seconds++
		}
		head.Header = append(head.Header, [2]string{"Retry-After", strconv.FormatInt(seconds, 10)})
	}
	return head
}

package bus

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"hydrallm/shared/contract"
)

// What is kept of answers that have been sent.
const (
	maxUnheard = 64 << 20   // bytes of all answers together
	maxKept    = 2 * Window // bytes of one; the client has taken what is older
)

// unheard are the replies that have sent frames of which their ingress has not said yet that it has them. A NATS server that dies takes frames with
// it, and so does one that stands still, when who waits for them leaves it. Then they are sent again. A server in this process does neither.
type unheard struct {
	off   bool         // nothing is kept
	bytes atomic.Int64 // that are kept

	mu      sync.Mutex
	replies map[*Reply]struct{}
}

// has says whether something of the answer to a request is kept.
func (u *unheard) has(rid string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for r := range u.replies {
		if r.rid == rid {
			return true
		}
	}
	return false
}

func (u *unheard) add(r *Reply) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.replies == nil {
		u.replies = map[*Reply]struct{}{}
	}
	u.replies[r] = struct{}{}
}

func (u *unheard) remove(r *Reply) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.replies, r)
}

func (u *unheard) all() []*Reply {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := make([]*Reply, 0, len(u.replies))
	for r := range u.replies {
		list = append(list, r)
	}
	return list
}

// progress is how far a reply is.
type progress struct {
	sent  uint64 // frames that had been sent at the report before this one, so that they are not on their way any more
	ended bool   // these are all
}

// report gives how far the replies are, and goes on to the next report. It leaves out those that are sending just now, which may take long.
func (u *unheard) report() map[*Reply]progress {
	all := map[*Reply]progress{}
	for _, r := range u.all() {
		if !r.mu.TryLock() {
			continue
		}
		all[r] = progress{sent: r.kept.reported, ended: r.done && len(r.buf) == 0 && r.kept.reported == r.kept.sent}
		r.kept.reported = r.kept.sent
		r.mu.Unlock()
	}
	return all
}

// kept are the messages of a reply that it may have to send again.
type kept struct {
	messages []keptMessage
	size     int
	sent     uint64 // frames so far
	reported uint64 // of them before the last report
	tooMuch  bool   // nothing is kept any more
}

type keptMessage struct {
	frames []byte
	next   uint64 // the number behind its last frame
	data   uint64 // bytes of the body up to its end
}

// keep remembers the frames in buf, which were sent. It must be called with mu held.
func (r *Reply) keep() {
	k, u := &r.kept, &r.bus.unheard
	if u.off || k.tooMuch {
		return
	}
	if k.sent == 0 {
		u.add(r)
	}
	k.sent = r.seq
	if k.size+len(r.buf) > maxKept {
		taken := r.credit.taken()
		r.drop(func(m keptMessage) bool { return m.data <= taken })
	}
	k.size += len(r.buf)
	if u.bytes.Add(int64(len(r.buf))) > maxUnheard || k.size > maxKept {
		k.tooMuch = true
		r.forget()
		return
	}
	if last := len(k.messages) - 1; last >= 0 && len(k.messages[last].frames)+len(r.buf) <= maxFrame {
		m := &k.messages[last]
		m.frames, m.next, m.data = append(m.frames, r.buf...), r.seq, r.sent
		return
	}
	k.messages = append(k.messages, keptMessage{frames: slices.Clone(r.buf), next: r.seq, data: r.sent})
}

// drop lets go of the first messages, as far as they are of no use any more. It must be called with mu held.
func (r *Reply) drop(useless func(keptMessage) bool) {
	k, n, size := &r.kept, 0, 0
	for n < len(k.messages) && useless(k.messages[n]) {
		size += len(k.messages[n].frames)
		n++
	}
	if k.messages = slices.Delete(k.messages, 0, n); len(k.messages) == 0 {
		k.messages = nil
	}
	k.size -= size
	r.bus.unheard.bytes.Add(-int64(size))
}

// forget lets go of everything. It must be called with mu held.
func (r *Reply) forget() {
	r.bus.unheard.bytes.Add(-int64(r.kept.size))
	r.kept.messages, r.kept.size = nil, 0
	r.bus.unheard.remove(r)
}

// heard takes in what the ingress says to a report of this reply.
func (r *Reply) heard(p progress, h contract.Heard) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case h.Lacks:
		return r.resend(h.From)
	case p.ended:
		r.forget()
	default:
		r.drop(func(m keptMessage) bool { return m.next <= p.sent })
	}
	return nil
}

// resend sends what is kept from a frame on again. More goes out only afterwards, so that nothing is missing before it. It must be called with mu held.
func (r *Reply) resend(from uint64) error {
	r.drop(func(m keptMessage) bool { return m.next <= from })
	for _, m := range r.kept.messages {
		if err := r.bus.answers.Publish(r.subj, m.frames); err != nil {
			return fmt.Errorf("sending reply frames again: %w", err)
		}
	}
	return nil
}

package pending

import (
	"hash/maphash"
	"sync"
	"time"

	"hydrallm/shared/contract"
)

// orphanPause is the shortest time between two cancellations of a request that nobody awaits.
const orphanPause = time.Second

// orphans remembers which requests were cancelled lately, in a table of fixed size.
type orphans struct {
	mu    sync.Mutex
	slots [1024]struct {
		hash uint64
		at   time.Time
	}
}

// due says whether to cancel the request of this hash now.
func (s *orphans) due(hash uint64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := &s.slots[hash%uint64(len(s.slots))]
	if slot.hash == hash && now.Sub(slot.at) < orphanPause {
		return false
	}
	slot.hash, slot.at = hash, now
	return true
}

// orphan handles frames that nobody awaits: their worker should stop, unless it has just ended.
func (t *Table) orphan(rid string, msg []byte) {
	if len(msg) > 0 && contract.FrameKind(msg[0]) == contract.FrameEnd {
		return
	}
	if t.orphans.due(maphash.String(t.seed, rid), time.Now()) {
		t.cancel(rid)
	}
}

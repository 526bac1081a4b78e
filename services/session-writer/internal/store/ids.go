package store

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// Prefixes of ids.
const (
	prefixSession = "ses_"
	prefixMessage = "msg_"
	prefixPart    = "prt_"
)

// ids makes ids that sort by the time at which they were made, also within a millisecond and when the clock is set back. It is safe for concurrent use.
type ids struct {
	mu      sync.Mutex
	last    uint64 // milliseconds
	entropy *ulid.MonotonicEntropy
}

func newIDs() *ids { return &ids{entropy: ulid.Monotonic(rand.Reader, 0)} }

// next gives the next id with the prefix.
func (g *ids) next(prefix string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = max(g.last, ulid.Timestamp(time.Now()))
	id, err := ulid.New(g.last, g.entropy)
	for err != nil { // the random part of this millisecond is at its end
		g.last++
		id, err = ulid.New(g.last, g.entropy)
	}
	return prefix + id.String()
}

// ForkID gives the id of the session that a request forks off. It is the same at each delivery of the request.
func ForkID(request string, receivedAt time.Time) string {
	var id ulid.ULID
	sum := sha256.Sum256([]byte(request))
	_ = id.SetTime(ulid.Timestamp(receivedAt)) // fails for times after the year 10889
	_ = id.SetEntropy(sum[:10])                // has the right length
	return prefixSession + id.String()
}

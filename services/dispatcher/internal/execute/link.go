package execute

import (
	"time"

	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/slot"
)

// link is a Link with what became of it in one request.
type link struct {
	Link

	calls int        // made through its channel
	out   bool       // it is out of the question for the rest of the request
	full  bool       // it was passed over only for lack of a slot
	last  *failure   // what came of the last call, if it failed
	tried *triedKeys // of its pool, which several links may share; nil without a pool
}

// triedKeys are the keys of a pool that the request was sent with.
type triedKeys struct{ indexes map[int]bool }

func (t *triedKeys) has(index int) bool { return t.indexes[index] }

func (t *triedKeys) add(index int) {
	if t.indexes == nil {
		t.indexes = map[int]bool{}
	}
	t.indexes[index] = true
}

// newLinks begins the states of a chain.
func newLinks(chain []Link) []link {
	links := make([]link, len(chain))
	for i, l := range chain {
		links[i].Link = l
		if l.Channel.Pool == nil {
			continue
		}
		for k := range i {
			if links[k].Channel.Pool == l.Channel.Pool {
				links[i].tried = links[k].tried
			}
		}
		if links[i].tried == nil {
			links[i].tried = &triedKeys{}
		}
	}
	return links
}

// usable says whether the link has a key that was not tried, or needs none.
func (l *link) usable() bool {
	return l.Channel.Pool == nil || l.Channel.Pool.Usable(l.Model, l.want(), l.tried.has)
}

// reservation is what a call through a link holds.
type reservation struct {
	slot   *slot.Lease
	permit Permit
	key    *keypool.Lease // nil without a pool
}

// unguarded is the permit of a channel without a breaker.
type unguarded struct{}

func (unguarded) Success()              {}
func (unguarded) Failure(time.Duration) {}
func (unguarded) Release()              {}

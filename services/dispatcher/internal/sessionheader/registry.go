package sessionheader

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Limits of a registry.
const (
	MaxSessions = 1000
	MaxIdle     = 6 * time.Hour // since the last use
)

// Source gives the id of the dialogue that a request continues. Implementations are safe for concurrent use.
type Source interface {
	// ID takes the raw messages member of the final body, after all patches and enrichment. It is not ok when there are no messages:
	// then the header is left out. The id is hex and tells nothing of the content.
	ID(ctx context.Context, messages []byte) (id string, ok bool)
}

var (
	_ Source = (*Registry)(nil)
	_ Source = (*Shared)(nil)
)

// Registry keeps the conversations of this process. The zero value is ready; conversations are lost with it.
type Registry struct {
	table table
}

// ID implements Source. It does no I/O.
func (r *Registry) ID(_ context.Context, messages []byte) (string, bool) {
	d, ok := readDialogue(messages)
	if !ok {
		return "", false
	}
	s, found := r.table.use(d.root)
	if !found {
		s = r.table.add(d.root, affinity{id: d.id()})
	}
	return s.id, true
}

// affinity is what a table knows of a dialogue.
type affinity struct {
	root   root
	id     string
	used   time.Time
	synced time.Time // when a shared store agreed, zero if never
}

// table holds the conversations that were used last.
type table struct {
	mu     sync.Mutex
	limit  int // 0 = MaxSessions
	order  list.List
	byRoot map[root]*list.Element // of affinity, the latest use in front
}

// use finds a conversation and marks it as used now.
func (t *table) use(r root) (affinity, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(r)
}

func (t *table) find(r root) (affinity, bool) {
	e := t.byRoot[r]
	if e == nil {
		return affinity{}, false
	}
	s, now := e.Value.(affinity), time.Now()
	if now.Sub(s.used) >= MaxIdle {
		return affinity{}, false
	}
	s.used = now
	e.Value = s
	t.order.MoveToFront(e)
	return s, true
}

// add stores a new conversation, unless another request was faster: then it gives that one. So requests that begin the same dialogue at the same
// time get one id.
func (t *table) add(r root, s affinity) affinity {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found, ok := t.find(r); ok {
		return found
	}
	return t.store(r, s)
}

// set stores a conversation whatever was there.
func (t *table) set(r root, s affinity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.store(r, s)
}

func (t *table) store(r root, s affinity) affinity {
	s.root, s.used = r, time.Now()
	if e := t.byRoot[r]; e != nil {
		e.Value = s
		t.order.MoveToFront(e)
		return s
	}
	if t.byRoot == nil {
		t.byRoot = map[root]*list.Element{}
	}
	t.byRoot[r] = t.order.PushFront(s)
	limit := t.limit
	if limit == 0 {
		limit = MaxSessions
	}
	if t.order.Len() > limit {
		oldest := t.order.Back()
		delete(t.byRoot, t.order.Remove(oldest).(affinity).root)
	}
	return s
}

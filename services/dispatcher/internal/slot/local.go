package slot

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Local counts the calls of this process. The zero value is ready.
type Local struct {
	mu     sync.Mutex
	counts map[string]*Load
}

// Acquire implements Acquirer. It does no I/O, and its only error is ErrBusy.
func (l *Local) Acquire(_ context.Context, candidates []Candidate, skip func(index int) bool) (*Lease, int, error) {
	for i, c := range candidates {
		if skip != nil && skip(i) {
			continue
		}
		if l.take(c) {
			return &Lease{from: l, id: c.ID}, i, nil
		}
	}
	return nil, -1, ErrBusy
}

func (l *Local) take(c Candidate) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.counts[c.ID]
	if u == nil {
		if l.counts == nil {
			l.counts = map[string]*Load{}
		}
		u = &Load{ID: c.ID}
		l.counts[c.ID] = u
	}
	u.Limit = max(0, c.Limit)
	if u.Limit > 0 && u.Active >= u.Limit {
		return false
	}
	u.Active++
	return true
}

func (l *Local) release(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.counts[id]
	if u.Active--; u.Active == 0 && len(l.counts) > maxIdle {
		delete(l.counts, id)
	}
}

// Count implements Acquirer.
func (l *Local) Count(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.counts[id]; u != nil {
		return u.Active
	}
	return 0
}

// Active implements Acquirer.
func (l *Local) Active() []Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Load, 0, len(l.counts))
	for _, u := range l.counts {
		all = append(all, *u)
	}
	slices.SortFunc(all, byID)
	return all
}

func byID(a, b Load) int { return cmp.Compare(a.ID, b.ID) }

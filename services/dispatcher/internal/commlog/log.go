// Package commlog keeps the last calls to providers and what came of them, without texts, while an operator wants to see them.
package commlog

import (
	"sync"
	"unicode/utf8"

	"hydrallm/shared/query"
)

// Bounds of R-334.
const (
	size    = 500  // entries
	maxText = 4000 // characters
	maxList = 50
)

// Log is a ring of entries. It is safe for concurrent use.
type Log struct {
	on func() bool

	mu      sync.Mutex
	entries []query.CommEntry // oldest at next, once there are as many as may be
	next    int
}

// New makes a log that takes entries while on says so.
func New(on func() bool) *Log { return &Log{on: on} }

// Enabled says whether entries are taken now.
func (l *Log) Enabled() bool { return l != nil && l.on() }

// Add keeps an entry, cut to the bounds, in the place of the oldest one.
func (l *Log) Add(e query.CommEntry) {
	e.Payload.Model = clip(e.Payload.Model)
	if reasons := e.Payload.FinishReasons; len(reasons) > maxList {
		e.Payload.FinishReasons = reasons[:maxList]
	}
	for i, reason := range e.Payload.FinishReasons {
		e.Payload.FinishReasons[i] = clip(reason)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) < size {
		l.entries = append(l.entries, e)
		return
	}
	l.entries[l.next] = e
	l.next = (l.next + 1) % size
}

func clip(s string) string {
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	return string([]rune(s)[:maxText])
}

// Newest gives at most so many entries, the newest first.
func (l *Log) Newest(most int) []query.CommEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.entries)
	list := make([]query.CommEntry, 0, min(n, max(most, 0)))
	for i := range cap(list) {
		list = append(list, l.entries[(l.next+2*n-1-i)%n])
	}
	return list
}

// Clear forgets all entries.
func (l *Log) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries, l.next = nil, 0
}

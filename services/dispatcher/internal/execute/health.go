package execute

import (
	"strings"
	"sync"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
)

// Health remembers what last came of calling each channel. The zero value is ready; it is safe for concurrent use.
type Health struct {
	mu          sync.Mutex
	heard       map[string]*Heard    // by circuit
	unreachable map[string]time.Time // providers without a connection, and since when
}

// Heard is what last came of calling a channel.
type Heard struct {
	Success time.Time // end of the last call that went well
	Failure Failure   // the last one; zero for none
}

// Failure is a call that brought no answer. It holds nothing that the provider wrote.
type Failure struct {
	At     time.Time
	Class  classify.Class
	Reason string
	Status int // of HTTP; 0 for none
	Model  string
}

// ofRequest says whether the request is to blame, which says nothing about the channel.
func ofRequest(c classify.Class) bool {
	switch c { //nolint:exhaustive // the others are about the channel, its keys or its models
	case classify.Client, classify.Untranslatable, classify.Incapable, classify.Size:
		return true
	}
	return false
}

// called takes in the result of a call.
func (h *Health) called(l *Link, v classify.Verdict, status int) {
	if v.Class == classify.Cancelled {
		return
	}
	h.Reached(l.Channel.Provider, !v.Unreached)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.heard == nil {
		h.heard = map[string]*Heard{}
	}
	last, now := h.heard[l.Channel.Circuit], time.Now()
	if last == nil {
		last = &Heard{}
		h.heard[l.Channel.Circuit] = last
	}
	switch {
	case v.Class == classify.Success:
		last.Success = now
	case !ofRequest(v.Class):
		last.Failure = Failure{now, v.Class, v.Reason, status, l.Model}
	}
}

// Reached takes in whether there was a connection to a provider.
func (h *Health) Reached(provider string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, away := h.unreachable[provider]; away != ok {
		return
	}
	if ok {
		delete(h.unreachable, provider)
		return
	}
	if h.unreachable == nil {
		h.unreachable = map[string]time.Time{}
	}
	h.unreachable[provider] = time.Now()
}

// Last is what was heard of a channel.
func (h *Health) Last(circuit string) Heard {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.heard[circuit]; last != nil {
		return *last
	}
	return Heard{}
}

// Unreachable is since when there is no connection to a provider; zero while there is one, or nobody has tried.
func (h *Health) Unreachable(provider string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unreachable[provider]
}

// Problem says in words why a call through the link would not be made now; "" when it would.
func (e *Executor) Problem(l Link) string {
	state, now := &newLinks([]Link{l})[0], time.Now()
	o, resting := keysRest(state, failure{})
	if !resting {
		o, _ = e.barrier(state, e.openFor(state), now)
	}
	return strings.TrimLeft(o.text, ": ")
}

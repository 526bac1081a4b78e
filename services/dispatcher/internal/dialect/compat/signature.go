package compat

import (
	"container/list"
	"sync"
	"time"
)

// Bounds of Signatures. A signature is some kilobytes of base64.
const (
	maxCalls     = 10_000
	maxBytes     = 64 << 20
	maxID        = 512
	maxSignature = 1 << 20
	signatureTTL = time.Hour // since the last use: an agent sends its whole history with each request
)

// Signatures remembers the thought signatures of tool calls that Gemini made. Gemini wants each back on its call, and most clients drop what
// they don't know. It is bounded in number, size and age, and safe for concurrent use.
type Signatures struct {
	mu    sync.Mutex
	calls map[string]*list.Element // by id
	order *list.List               // of *signed; the one that was used last is in front
	bytes int
}

// signed is a tool call with its signature.
type signed struct {
	id, signature string
	used          time.Time
}

func (s *signed) size() int { return len(s.id) + len(s.signature) }

// NewSignatures makes an empty memory.
func NewSignatures() *Signatures {
	return &Signatures{calls: make(map[string]*list.Element), order: list.New()}
}

// Learn notes the signature of a tool call. An empty one, or one of an absurd length, is ignored.
func (s *Signatures) Learn(toolCallID, signature string) {
	if toolCallID == "" || signature == "" || len(toolCallID) > maxID || len(signature) > maxSignature {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.calls[toolCallID]; ok {
		s.forget(e)
	}
	call := &signed{toolCallID, signature, now}
	s.calls[toolCallID] = s.order.PushFront(call)
	s.bytes += call.size()
	for e := s.order.Back(); e != nil; e = s.order.Back() {
		if s.order.Len() <= maxCalls && s.bytes <= maxBytes && now.Sub(e.Value.(*signed).used) < signatureTTL {
			break
		}
		s.forget(e)
	}
}

// Signature gives the signature of a tool call, or "".
func (s *Signatures) Signature(toolCallID string) string {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.calls[toolCallID]
	if !ok {
		return ""
	}
	call := e.Value.(*signed)
	if now.Sub(call.used) >= signatureTTL {
		s.forget(e)
		return ""
	}
	call.used = now
	s.order.MoveToFront(e)
	return call.signature
}

// Len is the number of calls that are remembered.
func (s *Signatures) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.order.Len()
}

func (s *Signatures) forget(e *list.Element) {
	call := s.order.Remove(e).(*signed)
	delete(s.calls, call.id)
	s.bytes -= call.size()
}

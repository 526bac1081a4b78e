package bus

import (
	"bytes"
	"container/list"
	"strings"
	"sync"
	"time"
)

// What is kept of bodies in this process. Below localFrom it costs less to send them.
const (
	localFrom  = 32 << 10
	localBytes = 256 << 20     // of all bodies; beyond, they are sent
	localLife  = time.Hour     // of one that nobody discards: twice what its message can wait
	localMark  = "in-process." // begins their names, so that they are never looked for in the object store
)

// Local is what services that share a process and its NATS server need not send through it. It suits a stream of requests in memory (ADR 1), which ends with the
// process. It is safe for concurrent use; with nil everything is sent.
//
// It keeps bodies of requests: the message of such a request has a name for its body, as one whose body is in the object store, and the bytes are copied
// once where they are published, not five times on their way through the server. And it hands frames of answers to the ingress that awaits them.
type Local struct {
	mu     sync.Mutex
	bodies map[string]*list.Element // of order
	order  list.List                // of *localBody, oldest first
	size   int

	listeners sync.Map // ingress -> *ReplyHandler
}

type localBody struct {
	name string
	data []byte
	ends time.Time
}

// NewLocal makes one for all the services of a process.
func NewLocal() *Local { return &Local{bodies: map[string]*list.Element{}} }

// put keeps a copy of body, and says whether it does.
func (l *Local) put(name string, body []byte) bool {
	if l == nil || len(body) < localFrom {
		return false
	}
	now := time.Now()
	b := &localBody{name: name, data: bytes.Clone(body), ends: now.Add(localLife)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(l.bodies[name])
	l.expire(now)
	if l.size+len(body) > localBytes {
		return false
	}
	l.bodies[name], l.size = l.order.PushBack(b), l.size+len(body)
	return true
}

// get gives a body, which is not to be changed; nil if it is gone.
func (l *Local) get(name string) []byte {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.bodies[name]; e != nil {
		return bodyOf(e).data
	}
	return nil
}

func (l *Local) discard(name string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(l.bodies[name])
	l.expire(time.Now())
}

func (l *Local) drop(e *list.Element) {
	if e != nil {
		b := bodyOf(e)
		l.order.Remove(e)
		delete(l.bodies, b.name)
		l.size -= len(b.data)
	}
}

// expire drops what is over.
func (l *Local) expire(now time.Time) {
	for e := l.order.Front(); e != nil && now.After(bodyOf(e).ends); e = l.order.Front() {
		l.drop(e)
	}
}

func bodyOf(e *list.Element) *localBody { return e.Value.(*localBody) } //nolint:forcetypeassert // nothing else is in the list

// listen has frames of answers that an ingress awaits handed to handler, by several goroutines at once, until stop is called, which does not wait for
// those that are in it. A later call for the same ingress takes the place of this one.
func (l *Local) listen(ingress string, handler ReplyHandler) (stop func()) {
	if l == nil {
		return func() {}
	}
	listener := &handler
	l.listeners.Store(ingress, listener)
	return func() { l.listeners.CompareAndDelete(ingress, listener) }
}

// hand hands a copy of frames to the ingress that awaits them, and says whether it listens in this process.
func (l *Local) hand(ingress, rid string, frames []byte) bool {
	if l == nil {
		return false
	}
	handler, here := l.listeners.Load(ingress)
	if here {
		(*handler.(*ReplyHandler))(rid, bytes.Clone(frames)) //nolint:forcetypeassert // the map holds nothing else
	}
	return here
}

// isLocal says whether a body of this name is in the process.
func isLocal(name string) bool { return strings.HasPrefix(name, localMark) }

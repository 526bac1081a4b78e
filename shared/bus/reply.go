package bus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// Flow control between a worker and the ingress.
const (
	// Window is how many bytes of an answer a worker may send ahead of the client. Together with what the collector leaves lying and the buffers of
	// both connections, a client that does not read costs about twice as much.
	Window = 512 << 10
	// CreditStep is how many bytes the client takes between two credits.
	CreditStep = Window / 4

	maxFrame = 64 << 10 // payload of one data frame; larger data is cut
)

// Reply writes the answer to one request as numbered frames. Frames are collected until Flush, so that frames which are ready together
// travel together, data as one frame. It has one writer; cancellation and credit come from other goroutines.
//
// The frames of a request that no ingress owns are recorded instead of sent: nobody's credit is waited for, and Flush returns when the server
// has them.
type Reply struct {
	bus      *Bus
	ingress  string
	rid      string
	subj     string
	recorder *recorder // nil for a request that an ingress owns
	at       contract.Position

	mu   sync.Mutex // guards the following
	seq  uint64
	buf  []byte // nil when there is nothing to keep
	data int    // where the data of the last frame in buf begins; 0 when that is another frame, or none
	done bool   // buf holds the end, or held it
	kept kept

	sent   uint64 // data bytes so far; the writer's own
	credit *credit
}

// OpenReply begins the answer to the request. There is one for a delivery; the caller must Close it.
func (w *Work) OpenReply() *Reply {
	r := &Reply{
		bus: w.bus, ingress: w.Request.Ingress, rid: w.Request.ID, subj: subject.Reply(w.Request.Ingress, w.Request.ID),
		at: w.position(), credit: newCredit(),
	}
	if w.Request.Background {
		r.at, r.recorder = recordedAt, &recorder{work: w, tail: w.tail}
	}
	w.reply.Store(r)
	return r
}

// Close ends the reply. Frames that were not flushed are lost.
func (r *Reply) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done && r.kept.sent > 0 {
		r.forget()
	}
	r.giveBack()
}

// frameBuffers are buffers that no reply needs at the moment.
var frameBuffers = sync.Pool{New: func() any { return new([]byte) }}

// giveBack lets the buffer go. It must be called with mu held.
func (r *Reply) giveBack() {
	if buf := r.buf[:0]; cap(buf) > 0 && cap(buf) <= keptBuffer {
		frameBuffers.Put(&buf)
	}
	r.buf, r.data = nil, 0
}

// keptBuffer is the largest buffer that another reply gets: what has almost a whole frame and then one more.
const keptBuffer = 2*maxFrame + 1<<10

// Head adds the status line and headers.
func (r *Reply) Head(h contract.Head) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addJSON(contract.FrameHead, &h)
	return nil
}

// End adds the last frame.
func (r *Reply) End(e contract.End) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addJSON(contract.FrameEnd, &e)
	r.done = true
	return nil
}

// Data adds body bytes, flushing whenever a message is full. It waits while the client is Window bytes behind, until ctx ends; what was collected
// before is on its way then. p is copied.
func (r *Reply) Data(ctx context.Context, p []byte) error {
	for len(p) > 0 {
		n := min(len(p), maxFrame)
		if err := r.await(ctx, r.sent+uint64(n)); err != nil {
			return err
		}
		r.sent += uint64(n)
		if err := r.addData(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// await returns when the client has taken so much that the answer may be upTo bytes long. A reply that has to wait keeps no buffer.
func (r *Reply) await(ctx context.Context, upTo uint64) error {
	if r.recorder != nil || r.credit.covers(upTo) {
		return nil
	}
	r.mu.Lock()
	err := r.flush()
	r.giveBack()
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return r.credit.wait(ctx, upTo)
}

func (r *Reply) addData(p []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.data > 0 {
		r.buf = contract.GrowFrame(r.buf, r.data, p)
	} else {
		r.takeBuffer()
		r.buf, r.data = contract.AppendGrowing(r.buf, contract.Frame{Kind: contract.FrameData, Position: r.at, Seq: r.seq, Payload: p})
		r.seq++
	}
	if len(r.buf) < maxFrame {
		return nil
	}
	return r.flush()
}

// addJSON must be called with mu held.
func (r *Reply) addJSON(kind contract.FrameKind, of interface{ AppendJSON(dst []byte) []byte }) {
	scratch := frameBuffers.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	text := of.AppendJSON((*scratch)[:0])
	r.add(kind, text)
	if cap(text) <= keptBuffer {
		*scratch = text[:0]
	}
	frameBuffers.Put(scratch)
}

// add must be called with mu held.
func (r *Reply) add(kind contract.FrameKind, payload []byte) {
	r.takeBuffer()
	r.buf = contract.AppendFrame(r.buf, contract.Frame{Kind: kind, Position: r.at, Seq: r.seq, Payload: payload})
	r.data = 0
	r.seq++
}

// takeBuffer must be called with mu held.
func (r *Reply) takeBuffer() {
	if r.buf == nil {
		r.buf = *frameBuffers.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	}
}

// Flush sends the collected frames as one message.
func (r *Reply) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flush()
}

// flush must be called with mu held.
func (r *Reply) flush() error {
	if len(r.buf) == 0 {
		return nil
	}
	var err error
	switch {
	case r.recorder != nil:
		err = r.recorder.write(r.buf, r.done)
	case r.bus.local.hand(r.ingress, r.rid, r.buf):
	default:
		if err = r.bus.answers.Publish(r.subj, r.buf); err == nil {
			r.keep()
		}
	}
	r.buf, r.data = r.buf[:0], 0
	if err != nil {
		return fmt.Errorf("sending reply frames: %w", err)
	}
	return nil
}

// ReplyHandler gets every reply message of an ingress: the request id and the encoded frames, which the handler may keep. It runs in the subscription's
// goroutine or, several at once, in those of workers in the same process. It must not block.
type ReplyHandler func(rid string, frames []byte)

// Subscription is something that can be stopped; messages that arrived before are still handled.
type Subscription struct {
	subs     []*nats.Subscription
	unlisten func() // from what comes without the server; may be nil
}

// Stop ends the subscription. It is idempotent.
func (s *Subscription) Stop() error {
	if s == nil {
		return nil
	}
	if s.unlisten != nil {
		s.unlisten()
	}
	for _, sub := range s.subs {
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrBadSubscription) {
			return fmt.Errorf("ending subscription %s: %w", sub.Subject, err)
		}
	}
	return nil
}

const (
	pendingMessages = 1 << 20
	pendingBytes    = 512 << 20
)

// SubscribeReplies receives the replies to all requests of an ingress. The server knows of it when it returns.
func (b *Bus) SubscribeReplies(ingress string, handler ReplyHandler) (*Subscription, error) {
	sub, err := b.answers.Subscribe(subject.Replies(ingress), func(m *nats.Msg) { handler(subject.Last(m.Subject), m.Data) })
	if err != nil {
		return nil, fmt.Errorf("subscribing to replies: %w", err)
	}
	if err := sub.SetPendingLimits(pendingMessages, pendingBytes); err != nil {
		return nil, errors.Join(fmt.Errorf("setting limits of the reply subscription: %w", err), sub.Unsubscribe())
	}
	if err := subscribed(b.answers); err != nil { // signs of life come over another connection
		return nil, errors.Join(err, sub.Unsubscribe())
	}
	return &Subscription{subs: []*nats.Subscription{sub}, unlisten: b.local.listen(ingress, handler)}, nil
}

// Credit tells the worker that the client of rid has taken consumed bytes in all.
func (b *Bus) Credit(rid string, consumed uint64) error {
	if err := b.nc.Publish(subject.Credit(rid), binary.AppendUvarint(nil, consumed)); err != nil {
		return fmt.Errorf("sending credit: %w", err)
	}
	return nil
}

// Cancel tells whoever works on rid that its client has gone.
func (b *Bus) Cancel(rid string) error {
	if err := b.nc.Publish(subject.Cancel(rid), nil); err != nil {
		return fmt.Errorf("sending a cancellation: %w", err)
	}
	return nil
}

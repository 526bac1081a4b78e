package pending

import (
	"sync"
	"time"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
)

// Client is the connection on which the answer is awaited.
type Client interface {
	// Gone says whether the other side has closed the connection. It does not block and is called from the table's goroutine.
	Gone() bool
	// Abort ends what blocks on the connection.
	Abort()
}

// maxQueued bounds the bytes that wait for a client: what a worker may send ahead, and a frame beyond it.
const maxQueued = bus.Window + bus.Window/2

// Request is a request whose answer is awaited. Frames come in through its Table; one goroutine takes them out with Head and Next.
type Request struct {
	ID string

	client   Client
	begun    time.Time
	follower *follower // nil for an answer that a worker sends
	repairs  bool      // the worker sends again what is missing

	mu      sync.Mutex
	changed sync.Cond // on mu: something is there for Head or Next

	at      contract.Position      // how far the request has come; frames from before are ignored
	ran     []uint64               // deliveries at which workers of this stage are known to have had the request and did not give it back
	worker  string                 // the one that has it, if it has shown itself
	back    bool                   // it has given the request back
	asked   contract.FenceQuestion // that was answered with this position
	next    uint64                 // sequence number of the next frame of this position
	gap     bool                   // a later one has come
	head    []byte                 // nil until the answer is committed
	queue   [][]byte
	queued  int
	ended   bool
	end     contract.End // when ended
	err     error
	failed  func() // called when err is set; may be nil
	ping    bool   // the client should get a sign of life
	pings   bool   // the answer is a stream that can carry one
	working bool   // the worker showed itself without data: it may wait for credit that was lost

	// For the sweep.
	heard     bool      // a frame of a worker came since the last sweep
	handedOn  bool      // a stage has handed the request on since the last sweep
	moved     bool      // data came since the last sweep
	taken     bool      // a worker of the stage has shown itself
	startBy   time.Time // when a request that nobody takes is given up
	lastHeard time.Time
	lastMoved time.Time
	gapSince  time.Time // when the sweep found the gap; zero = it has not
	due       time.Time // the next ping before the commit; zero = never
}

func newRequest(id string, client Client, startBy, now time.Time) *Request {
	r := &Request{ID: id, client: client, begun: now, startBy: startBy, lastHeard: now, lastMoved: now}
	r.changed.L = &r.mu
	return r
}

// Head waits until the answer is committed and gives the encoded contract.Head, or the reason why none will come. It gives ErrSilent when the
// client should get a sign of life before, and may be called again then.
func (r *Request) Head() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.head == nil && r.err == nil && !r.ping {
		r.changed.Wait()
	}
	ping := r.ping
	r.ping = false
	switch {
	case r.head != nil:
		return r.head, nil
	case r.err == nil && ping:
		return nil, ErrSilent
	}
	return nil, r.err
}

// PingFrom makes Head ask for signs of life from due on, as long as a worker has the request and is silent, or may have it and had no time yet to
// show itself. Nobody is to think that a request which no worker takes is being worked on.
func (r *Request) PingFrom(due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = due
}

// committed says whether the answer has begun.
func (r *Request) committed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head != nil
}

// Part is what Next gives: data, a request for a sign of life, the worker's sign of life, the end, or an error. Data comes before the end or
// the error that follow it, possibly in the same Part.
type Part struct {
	Data    [][]byte
	Ping    bool
	Working bool // the worker showed itself without data; it may wait for credit that was lost
	End     bool
	Err     error
}

// Next waits for more of the answer. It takes over reuse, the Data of an earlier Part, as space for the queue. A sign of life is asked for
// only when nothing else is there.
func (r *Request) Next(reuse [][]byte) Part {
	clear(reuse)
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) == 0 && !r.ended && r.err == nil && !r.ping && !r.working {
		r.changed.Wait()
	}
	p := Part{Data: r.queue, Ping: r.ping && len(r.queue) == 0, Working: r.working, End: r.ended}
	if !r.ended {
		p.Err = r.err
	}
	r.queue, r.queued, r.ping, r.working = reuse[:0], 0, false, false
	return p
}

// Ready says whether Next would not wait.
func (r *Request) Ready() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue) > 0 || r.ended || r.err != nil
}

// End tells how the answer ended, and what the request used. It is empty when no end has come.
func (r *Request) End() contract.End {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end
}

// SendPings makes Next ask for signs of life while the answer is silent.
func (r *Request) SendPings() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pings = true
}

// deliver takes in the frames of one message. wanted is false when the request failed earlier, so that its worker should stop. An error
// means that the request has just failed with it.
func (r *Request) deliver(msg []byte) (wanted bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.ended {
		return r.ended, nil
	}
	for f, bad := range contract.Frames(msg) {
		if bad != nil {
			err = ErrMalformed
		} else {
			err = r.accept(f)
		}
		if err != nil {
			r.failLocked(err)
			return true, err
		}
	}
	r.changed.Signal()
	return true, nil
}

// accept must be called with mu held.
func (r *Request) accept(f contract.Frame) error {
	if r.ended {
		return nil
	}
	if f.Position != r.at {
		if r.head != nil || f.Compare(r.at) < 0 {
			return nil // only one may answer
		}
		r.moveTo(f.Position)
	}
	r.heard = true
	switch {
	case f.Seq < r.next:
		return nil // a duplicate
	case f.Seq > r.next && r.repairs:
		r.gap = true
		return nil // it comes again, behind those that are missing
	case f.Seq > r.next:
		return ErrGap
	}
	r.next++
	r.gap, r.gapSince = false, time.Time{}
	switch {
	case f.Kind == contract.FrameHead && r.head == nil:
		r.head = f.Payload
	case f.Kind == contract.FrameData && r.head != nil:
		return r.enqueue(f.Payload)
	case f.Kind == contract.FrameEnd && r.head != nil:
		end, err := contract.ParseEnd(f.Payload)
		if err != nil || end.Outcome == contract.OutcomeBroken {
			r.end = end
			return ErrBroken
		}
		r.ended, r.end = true, end
	default:
		return ErrMalformed
	}
	return nil
}

// enqueue must be called with mu held.
func (r *Request) enqueue(data []byte) error {
	if r.queued += len(data); r.queued > maxQueued {
		return ErrOverflow
	}
	r.moved = true
	r.queue = append(r.queue, data)
	return nil
}

// moveTo makes a position the only one that may answer. It must be called with mu held and before the commit.
func (r *Request) moveTo(at contract.Position) {
	if at.Stage != r.at.Stage {
		r.ran = nil
	}
	if at.Delivery > 0 {
		r.ran = append(r.ran, at.Delivery)
	}
	r.at, r.next, r.worker, r.back, r.asked = at, 0, "", false, contract.FenceQuestion{}
	r.gap, r.gapSince = false, time.Time{}
}

// handedBack takes in that the worker of a position has given the request back because it stops: it waits for a worker again, and nothing was lost
// . Word of a position from before comes too late. Of a first delivery it may be all that is heard.
func (r *Request) handedBack(at contract.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.head != nil || r.back {
		return
	}
	if at.Delivery == 1 && at.Compare(r.at) > 0 {
		r.moveTo(at)
	}
	if at != r.at || at.Delivery == 0 {
		return
	}
	r.ran = r.ran[:len(r.ran)-1]
	r.back, r.heard, r.handedOn = true, false, true
}

// alive takes in that a worker has the request. It says whether that is awaited, and whether frames of its answer are missing.
func (r *Request) alive(worker string, s contract.Sign) (h contract.Heard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.ended {
		h.Unwanted = !r.ended
		return h
	}
	at := s.Position
	if at != r.at {
		if r.head != nil || at.Compare(r.at) < 0 {
			h.Unwanted = at.Stage == r.at.Stage && r.worker != "" && r.worker != worker // another one has taken its place
			return h
		}
		r.moveTo(at)
	}
	if at.Delivery == 0 {
		r.heard, r.handedOn = false, true
		return h
	}
	r.worker, r.heard, r.working = worker, true, r.head != nil
	r.changed.Signal()
	if s.Sent > r.next {
		h.Lacks, h.From = true, r.next
	}
	return h
}

// fence decides whether a delivery may run that another worker may have had (delivery rule 3). An error means that the request has just failed
// with it.
//
// Evidence of life counts more than the lease: a message comes back when its worker is late in renewing that, which a slow machine is enough for.
// Nor do the delivery counts of the server decide, because it may have forgotten some in an outage.
func (r *Request) fence(q contract.FenceQuestion, now time.Time, limits Limits) (contract.FenceAnswer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stop := contract.FenceAnswer{Decision: contract.FenceStop, Lost: r.ran}
	gone := q.Gone
	q.Gone = ""
	began := r.at.Stage == q.At.Stage && r.at.Delivery > 0 // a worker of this stage is known
	switch {
	case r.err != nil || r.ended, q.At.Compare(contract.Position{Stage: r.at.Stage}) < 0:
		return stop, nil // nobody waits, or a later stage has it
	case began && r.head == nil && q == r.asked && !r.back:
		return r.run(), nil
	case began && r.mayLive(gone, now, limits):
		return contract.FenceAnswer{Decision: contract.FenceWait, Worker: r.worker}, nil
	case r.head != nil:
		r.failLocked(ErrDied)
		return stop, ErrDied
	}
	next := q.At
	if began {
		next.Delivery = max(next.Delivery, r.at.Delivery+1)
	}
	r.moveTo(next)
	if !began && q.At.Delivery > 1 {
		r.ran = append([]uint64{1}, r.ran...) // the first one did not show itself
	}
	r.heard, r.asked = true, q
	return r.run(), nil
}

// run is the answer to a worker that may run at the present position.
func (r *Request) run() contract.FenceAnswer {
	a := contract.FenceAnswer{Decision: contract.FenceRun, Delivery: r.at.Delivery}
	if earlier := len(r.ran) - 1; earlier > 0 {
		a.Lost = r.ran[:earlier]
	}
	return a
}

// mayLive says whether the worker that has the request may be alive: the one that is gone is not, and one that can't be asked, because it has not
// shown itself yet, counts as dead sooner.
func (r *Request) mayLive(gone string, now time.Time, limits Limits) bool {
	limit := limits.Silence
	switch {
	case r.back:
		return false
	case r.worker == "":
		limit = limits.Lease
	case r.worker == gone:
		return false
	}
	return r.heard || now.Sub(r.lastHeard) < limit
}

// fail ends the request with err. It is false when the answer has ended already, one way or the other.
func (r *Request) fail(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.ended {
		return false
	}
	r.failLocked(err)
	return true
}

// OnFailure has fn called when the request fails, at once if it has failed already. fn must not block; nil takes it back.
func (r *Request) OnFailure(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = fn
	if fn != nil && r.err != nil {
		fn()
	}
}

func (r *Request) failLocked(err error) {
	r.err = err
	if r.failed != nil {
		r.failed()
	}
	r.changed.Signal()
}

// open says whether the answer has neither ended nor failed.
func (r *Request) open() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ended && r.err == nil
}

// sweep looks whether the request must be given up, or its client needs a sign of life. An error means that the request has just failed
// with it.
func (r *Request) sweep(now time.Time, limits Limits) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.ended {
		return nil
	}
	if r.handedOn {
		r.handedOn, r.taken, r.startBy = false, false, now.Add(limits.Queue+limits.Grace)
	}
	if r.heard {
		r.heard, r.taken, r.lastHeard = false, true, now
	}
	if r.gap && r.gapSince.IsZero() {
		r.gapSince = now
	}
	if err := r.overdue(now, limits); err != nil {
		r.failLocked(err)
		return err
	}
	if r.moved || r.head == nil {
		r.moved, r.lastMoved = false, now
	}
	taken := r.taken || now.Sub(r.begun) < 2*limits.Grace
	if r.head == nil && taken && !r.due.IsZero() && !now.Before(r.due) {
		r.ping, r.due = true, now.Add(limits.Heartbeat)
		r.changed.Signal()
	}
	if r.pings && now.Sub(r.lastMoved) >= limits.Heartbeat {
		r.ping, r.lastMoved = true, now
		r.changed.Signal()
	}
	return nil
}

// overdue must be called with mu held.
func (r *Request) overdue(now time.Time, limits Limits) error {
	silent := now.Sub(r.lastHeard)
	switch {
	case r.follower == nil && limits.Total > 0 && r.head == nil && now.Sub(r.begun) > limits.Total+limits.Grace:
		return ErrDeadline
	case r.gap && now.Sub(r.gapSince) > limits.Repair:
		return ErrGap
	case !r.taken:
		if now.After(r.startBy) {
			return ErrNotTaken
		}
	case r.follower != nil, silent <= limits.Silence: // a recording says itself when its worker is lost or its time is over
	case r.head != nil || silent > limits.Queue:
		return ErrLost
	}
	return nil
}

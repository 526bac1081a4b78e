package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/propagation"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// PublishWork hands a request to the first stage of its slip and returns when the server has it. One that no ingress owns waits on disk. The message id is the request id and the
// stage, so that a repeated publish is stored once (delivery rule 1). While the server is away it waits, until no worker may begin any more.
// body is not kept.
func (b *Bus) PublishWork(ctx context.Context, req *contract.Request, body []byte) error {
	ctx, cancel := untilStart(ctx, req)
	defer cancel()
	msg, err := b.workMessage(ctx, req, body)
	if err != nil {
		return err
	}
	err = b.publishWork(ctx, msg, req.ID)
	if errors.Is(err, ErrWorkFull) {
		b.local.discard(first(msg.Header[contract.HeaderBody]))
	}
	return err
}

// workMessage makes the message for the first stage of the slip. A body above the payload limit is stored under a name of its own for each
// stage: a redelivery of the stage before must find what it got.
func (b *Bus) workMessage(ctx context.Context, req *contract.Request, body []byte) (*nats.Msg, error) {
	stage := string(req.Slip.Here())
	msg := &nats.Msg{Subject: waitsAt(req), Header: req.Header(), Data: body}
	name := req.ID + "." + stage
	switch {
	case len(body) > b.maxInline:
		if err := b.storeBody(ctx, name, body); err != nil {
			return nil, err
		}
	case !req.Background && b.local.put(localMark+name, body):
		name = localMark + name
	default:
		return msg, nil
	}
	msg.Header[contract.HeaderBody] = []string{name}
	msg.Data = nil
	return msg, nil
}

// waitsAt is where a request waits for the first stage of its slip.
func waitsAt(req *contract.Request) string {
	stage := string(req.Slip.Here())
	if req.Background {
		return subject.Background(stage)
	}
	return subject.Work(stage)
}

// untilStart bounds the publishing of a request, which makes no sense for longer than a worker may wait to begin.
func untilStart(ctx context.Context, req *contract.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(time.Until(req.StartBy), firstAckWait))
}

func (b *Bus) publishWork(ctx context.Context, msg *nats.Msg, rid string) error {
	traceContext.Inject(ctx, propagation.HeaderCarrier(msg.Header))
	msg.Header[nats.MsgIdHdr] = []string{rid + "." + subject.Last(msg.Subject)}
	err := b.store(ctx, msg)
	if full(err) {
		return fmt.Errorf("publishing to %s: %w", msg.Subject, ErrWorkFull)
	}
	return err
}

// Work is one delivery of a request to a stage. The handler settles it with exactly one of Done, Retry, Drop, Dead or Forward; later calls do
// nothing. Until then the bus keeps other workers away from it and tells the ingress that it is worked on.
type Work struct {
	Request  *contract.Request
	Body     []byte   // valid until the work is settled, not to be changed
	Delivery uint64   // delivery count, from 1; of a redelivery, as the ingress counts
	Lost     []uint64 // the earlier deliveries at which workers of this stage had the request and did not hand it back because they stopped

	bus     *Bus
	stop    <-chan struct{} // closed when handlers are cut off
	msg     *message
	room    room   // that it takes up
	object  string // name of the body in the object store, "" for a body inside the message
	begun   time.Time
	first   bool        // no other worker can have had it
	tail    tail        // of the recording, when no ingress owns the request
	granted atomic.Bool // the handler may run, or runs
	settled atomic.Bool
	yielded atomic.Bool
	cancel  context.CancelCauseFunc // of the handler's context
	reply   atomic.Pointer[Reply]
}

func (w *Work) position() contract.Position {
	return contract.Position{Stage: w.Request.Slip.Here(), Delivery: w.Delivery}
}

// Done says that the stage has finished with the message. A recorded answer that was begun and has no end gets one.
func (w *Work) Done() {
	if w.reply.Load() != nil {
		w.conclude()
	}
	w.settle(jetstream.Msg.Ack)
}

// Retry hands the message back for another delivery after delay. It counts as lost for the next worker, unless this one was told to stop.
func (w *Work) Retry(delay time.Duration) {
	w.settle(func(m jetstream.Msg) error {
		if w.granted.Load() && w.stopped() {
			w.bus.handedBack(w)
		}
		return m.NakWithDelay(delay)
	})
}

// HandBack is Retry by a worker that stops, or is about to: nothing counts as lost.
func (w *Work) HandBack(delay time.Duration) {
	w.settle(func(m jetstream.Msg) error {
		w.bus.handedBack(w)
		return m.NakWithDelay(delay)
	})
}

// Yield gives the place that the work takes up in WorkConfig.MaxInFlight to another one, for a handler that waits for something which others hold. It may be
// repeated.
func (w *Work) Yield() {
	if !w.yielded.Swap(true) {
		w.room.free()
	}
}

func (w *Work) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// giveBack hands back a message that nobody has begun with; without it the server would wait for AckWait.
func (w *Work) giveBack() {
	w.settle(func(m jetstream.Msg) error {
		if w.first {
			w.bus.handedBack(w)
		}
		return m.Nak()
	})
}

// Drop removes the message: nobody waits for its answer any more.
func (w *Work) Drop() { w.settle(jetstream.Msg.Term) }

// Dead moves the message to the dead letters of stage with the reason, without its body, and removes it. A recorded answer gets an end.
func (w *Work) Dead(ctx context.Context, stage, reason string) error {
	w.conclude()
	err := w.bus.buryWork(ctx, deadLetter{stage: stage, rid: w.Request.ID, origin: w.msg.Subject(), reason: reason, deliveries: w.Delivery})
	w.Drop()
	return err
}

// Forward hands the request with its envelope as it is now to the next stage of the slip, which has the whole queue timeout to begin,
// and then settles the message (delivery rule 1). body is the edited body, or nil if the stage has not changed it. A stage makes the same edit
// of its own input at each delivery, so that it does not matter which of them is forwarded. A request whose client has gone is removed instead.
func (w *Work) Forward(ctx context.Context, body []byte) error {
	if errors.Is(context.Cause(ctx), contract.ErrClientGone) {
		w.Drop()
		w.discard(ctx)
		return nil
	}
	next := *w.Request
	next.Slip = next.Slip[1:]
	if next.QueueTimeout > 0 {
		next.StartBy = time.Now().Add(next.QueueTimeout)
	}
	ctx, cancel := untilStart(ctx, &next)
	defer cancel()
	msg := &nats.Msg{Subject: waitsAt(&next), Header: next.Header(), Data: w.Body}
	switch {
	case body != nil:
		var err error
		if msg, err = w.bus.workMessage(ctx, &next, body); err != nil {
			return err
		}
	case w.object != "":
		msg.Header[contract.HeaderBody] = []string{w.object}
		msg.Data = nil
	}
	if err := w.bus.publishWork(ctx, msg, next.ID); err != nil {
		return err
	}
	if !next.Background {
		w.bus.queued(&next)
	}
	w.Done()
	if body != nil {
		w.discard(ctx)
	}
	return nil
}

func (w *Work) settle(how func(jetstream.Msg) error) {
	if !w.settled.CompareAndSwap(false, true) {
		return
	}
	if err := w.msg.settle(how); err != nil { // it comes back, if the server has it
		w.bus.log.Debug("settling a message", slog.String("rid", w.Request.ID), slog.Any("error", err))
	}
}

// WorkConfig says which stage's messages to consume and how many at once.
type WorkConfig struct {
	Consumer    string // name of the stage's consumer in package topology
	MaxInFlight int    // requests of clients handled at the same time, and as many in the background; more wait in the stream, for whoever has room

	// Refused is told of a delivery that the handler does not get because nobody waits for its answer: it came too late, or it is a redelivery
	// that must not run (delivery rule 3). It does not settle the work. It may be nil.
	Refused func(ctx context.Context, w *Work)
}

// Consumer runs a handler over the messages of one stage.
type Consumer struct {
	bus     *Bus
	cfg     WorkConfig
	handler func(context.Context, *Work)
	metrics stageMetrics
	pullers []*puller     // of both streams of work
	control *Subscription // to cancellations and credits

	ctx      context.Context //nolint:containedctx // cancelled when the hard stop begins
	cancel   context.CancelCauseFunc
	stopping atomic.Bool
	spare    chan *Work     // to a worker that waits, if there is one
	waiting  atomic.Int32   // workers that wait
	closed   chan struct{}  // no message will come any more
	closing  sync.Once      // of closed
	running  sync.WaitGroup // workers
	ticking  sync.WaitGroup // the progress goroutine

	mu        sync.Mutex
	inFlight  map[*Work]struct{}
	listeners map[string]*listener // by ingress
}

// ErrStopping is the cause of the context of handlers that outlive the soft limit of a stop.
var ErrStopping = errors.New("service is stopping")

const prefetch = 256

// maxWaiting bounds the workers that are kept for later messages. Their stacks have grown to what a handler needs, which a new goroutine has
// to do first.
const maxWaiting = 128

// ConsumeWork runs handler for every message of a stage, at the same time, with a context that carries the trace of the request. It is cancelled
// with contract.ErrClientGone when the client leaves. The caller must Stop the consumer.
func (b *Bus) ConsumeWork(ctx context.Context, cfg WorkConfig, handler func(context.Context, *Work)) (*Consumer, error) {
	c := &Consumer{
		bus: b, cfg: cfg, handler: handler, metrics: b.metrics.of(cfg.Consumer), inFlight: map[*Work]struct{}{}, listeners: map[string]*listener{},
		spare: make(chan *Work), closed: make(chan struct{}),
	}
	var err error
	if c.control, err = b.subscribeControl(); err != nil {
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.ticking.Go(c.reportProgress)
	for _, stream := range []string{subject.WorkStream, subject.BackgroundStream} {
		free := newRoom(cfg.MaxInFlight)
		p := b.pullDurable(stream, cfg.Consumer, prefetch, (&intake{c, free}).deliver)
		p.room = free
		if err = p.start(ctx); err != nil {
			over, cancel := context.WithCancel(ctx)
			cancel()
			return nil, errors.Join(err, c.Stop(over))
		}
		c.pullers = append(c.pullers, p)
	}
	return c, nil
}

// intake is where the messages of one stream come in.
type intake struct {
	*Consumer

	room room
}

// deliver takes in a message, whose place is freed once it has been handled.
func (c *intake) deliver(msg *message) {
	w, err := c.open(msg)
	if err != nil {
		c.refuse(msg, err)
		c.room.free()
		return
	}
	if c.stopping.Load() {
		w.giveBack()
		c.room.free()
		return
	}
	w.room = c.room
	c.track(w)
	select {
	case c.spare <- w:
	default:
		c.running.Go(func() { c.work(w) })
	}
}

// work handles a message, and those that come while it waits.
func (c *Consumer) work(w *Work) {
	for w != nil {
		func() {
			defer w.Yield()
			c.handle(w)
		}()
		w = c.next()
	}
}

// next waits for another message; nil when none will come, or when enough others wait.
func (c *Consumer) next() (w *Work) {
	defer c.waiting.Add(-1)
	if c.waiting.Add(1) > maxWaiting {
		return nil
	}
	select {
	case w = <-c.spare:
	case <-c.closed:
	}
	return w
}

func (c *Consumer) open(msg *message) (*Work, error) {
	req, err := contract.ParseRequest(msg.Headers())
	if err != nil {
		return nil, err
	}
	if msg.Subject() != waitsAt(req) {
		return nil, fmt.Errorf("%w: the slip says %s", contract.ErrNotARequest, req.Slip.Here())
	}
	meta, err := msg.Metadata()
	if err != nil {
		return nil, fmt.Errorf("reading the delivery count: %w", err)
	}
	waited(c.metrics.waits, meta.Timestamp, meta.NumDelivered)
	return &Work{
		Request: req, Body: msg.Data(), Delivery: meta.NumDelivered, bus: c.bus, stop: c.ctx.Done(), msg: msg, object: first(msg.Headers()[contract.HeaderBody]),
		begun: time.Now(),
		first: meta.NumDelivered == 1 && c.bus.session.knows(meta.Timestamp),
	}, nil
}

// refuse puts away a message that no worker will ever understand.
func (c *Consumer) refuse(msg *message, cause error) {
	ctx, cancel := context.WithTimeout(c.ctx, topology.AckWait)
	defer cancel()
	letter := deadLetter{stage: c.cfg.Consumer, rid: first(msg.Headers()[contract.HeaderRequestID]), origin: msg.Subject(), reason: cause.Error()}
	if err := c.bus.buryWork(ctx, letter); err != nil {
		return // it comes back after AckWait
	}
	_ = msg.settle(jetstream.Msg.Term)
}

func (c *Consumer) handle(w *Work) {
	defer c.untrack(w)
	defer func() {
		if p := recover(); p != nil {
			c.bus.log.Error("handler panicked", slog.String("rid", w.Request.ID), slog.Any("panic", p), slog.String("stack", stack()))
			w.Retry(time.Second)
		}
	}()
	ctx, cancel := context.WithCancelCause(tracedBy(c.ctx, w.msg.Headers()))
	defer cancel(nil)
	w.cancel = cancel
	if !c.admit(ctx, w) {
		return
	}
	c.bus.control.add(w)
	defer c.bus.control.remove(w)
	w.granted.Store(true)
	ctx, end := w.span(ctx, c.cfg.Consumer)
	defer end(nil)
	c.metrics.busy.Inc()
	defer c.metrics.busy.Dec()
	defer func(began time.Time) { c.metrics.seconds.Observe(time.Since(began).Seconds()) }(time.Now())
	if w.object != "" {
		body, err := c.bus.loadBody(ctx, w.object)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			_ = w.Dead(ctx, c.cfg.Consumer, err.Error()) // it is in the log
			return
		}
		if err != nil {
			c.bus.log.Error("loading a body", slog.String("rid", w.Request.ID), slog.Any("error", err))
			w.Retry(time.Second)
			return
		}
		w.Body = body
	}
	c.handler(ctx, w)
	if !w.settled.Load() {
		c.bus.log.Error("handler left a message unsettled", slog.String("rid", w.Request.ID))
		w.Retry(time.Second)
	}
}

// admit says whether the handler may have a delivery. When it is false the delivery is settled, or left to who has it.
func (c *Consumer) admit(ctx context.Context, w *Work) bool {
	if w.Request.Background {
		return c.admitRecorded(ctx, w)
	}
	if w.Delivery == 1 && time.Now().After(w.Request.StartBy) {
		c.decline(ctx, w)
		return false
	}
	if w.first {
		return true
	}
	a, err := c.mayRun(ctx, w)
	switch {
	case errors.Is(err, ErrNoOwner), err == nil && a.Decision == contract.FenceStop:
		if w.Lost = a.Lost; len(a.Lost) == 0 && w.Delivery > 1 {
			w.Lost = []uint64{1} // the ingress knows nothing of it any more
		}
		c.decline(ctx, w)
	case err != nil:
		c.bus.log.Warn("asking the owner of a redelivered request", slog.String("rid", w.Request.ID), slog.Any("error", err))
		w.Retry(askRetry)
	case a.Decision == contract.FenceRun:
		w.Delivery, w.Lost = a.Delivery, a.Lost
		return true
	case a.Worker == c.bus.id:
		w.settled.Store(true) // what becomes of the other delivery, here, becomes of this one
	default:
		w.Retry(askRetry)
	}
	return false
}

// decline removes a message that nobody waits for.
func (c *Consumer) decline(ctx context.Context, w *Work) {
	if c.cfg.Refused != nil {
		c.cfg.Refused(ctx, w)
	}
	w.Drop()
	w.discard(ctx)
}

// mayRun asks the ingress that owns the request whether a delivery may run that another worker may have had (delivery rule 3). The ingress goes by
// what it hears; a worker that it has heard of lately is asked, too, because it may have died since, or may have given the request back.
func (c *Consumer) mayRun(ctx context.Context, w *Work) (contract.FenceAnswer, error) {
	q := contract.FenceQuestion{RequestID: w.Request.ID, At: w.position(), Worker: c.bus.id}
	for {
		a, err := c.bus.Fence(ctx, w.Request.Ingress, q)
		if err != nil || a.Decision != contract.FenceWait || a.Worker == "" || a.Worker == q.Gone || c.bus.hasWork(ctx, a.Worker, q.RequestID) {
			return a, err
		}
		q.Gone = a.Worker
	}
}

// hasWork says whether a worker has a request, as far as can be found out.
func (b *Bus) hasWork(ctx context.Context, worker, rid string) bool {
	has, _ := b.askWorker(ctx, worker, rid)
	return has
}

// askWorker is hasWork; absent says that the worker is gone.
func (b *Bus) askWorker(ctx context.Context, worker, rid string) (has, absent bool) {
	if worker == b.id {
		return b.busyWith(rid), false
	}
	ctx, cancel := context.WithTimeout(ctx, topology.AckWait)
	defer cancel()
	answer, err := b.ask(ctx, subject.Worker(worker), []byte(rid))
	if err != nil {
		absent = errors.Is(err, nats.ErrNoResponders)
		return !absent, absent
	}
	return string(answer) == hasIt, false
}

// busyWith says whether a request is worked on here, or was and its answer may have to be sent again.
func (b *Bus) busyWith(rid string) bool { return b.control.has(rid) || b.unheard.has(rid) }

func (c *Consumer) track(w *Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight[w] = struct{}{}
}

func (c *Consumer) untrack(w *Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inFlight, w)
}

// InFlight is the number of messages being handled.
func (c *Consumer) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.inFlight)
}

func (c *Consumer) older(than time.Time) []*Work {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*Work
	for w := range c.inFlight {
		if w.begun.Before(than) {
			list = append(list, w)
		}
	}
	return list
}

// Stop takes no further messages, hands back what has not begun, waits for the handlers until ctx ends, then cancels them with ErrStopping
// and waits for their return. It is idempotent.
func (c *Consumer) Stop(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.stopping.Store(true)
	done := make(chan struct{})
	go func() {
		for _, p := range c.pullers {
			p.stop()
		}
		c.closing.Do(func() { close(c.closed) })
		c.running.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		if n := c.InFlight(); n > 0 {
			err = fmt.Errorf("stopping consumer %s: %d requests cut off: %w", c.cfg.Consumer, n, ctx.Err())
		}
		c.cancel(ErrStopping)
		<-done
	}
	c.cancel(ErrStopping)
	c.ticking.Wait()
	return errors.Join(err, c.control.Stop())
}

func first(v []string) string {
	if len(v) == 0 {
		return ""
	}
	return v[0]
}

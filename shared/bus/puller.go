package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hydrallm/shared/topology"
)

const (
	pullExpiry    = 10 * time.Second
	pullHeartbeat = 2 * time.Second        // two missing ones: the server that had the consumer is gone
	openLimit     = 2 * time.Second        // of the first tries
	openTries     = 3                      // with that limit
	createTry     = 500 * time.Millisecond // until the creation of a consumer is asked for again
	reopenPause   = 250 * time.Millisecond
	maxPatience   = 3 // times that a limit is doubled: on a busy machine everything takes longer
)

// tryLimit is how long a try may take behind others that failed in a row.
func tryLimit(failed int) time.Duration { return openLimit << min(max(failed, 0), maxPatience) }

// puller keeps messages of a JetStream consumer coming, whatever happens to the consumer, to its stream or to the server.
type puller struct {
	bus   *Bus
	name  string // for the log
	ahead int    // messages that are fetched ahead
	room  room   // nil: take is done with a message when it returns

	open func(context.Context) (*source, error)

	// anew has it start over after each trouble, with another consumer. Without it a consumer is used as long as it is there.
	anew bool

	first  chan struct{} // closed when it works for the first time
	failed int           // tries to open in a row
	stalls int           // in a row
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// room holds a token for each message that may still be fetched. Who takes a message frees its place once it is done with it. So nothing is fetched that
// would have to wait here, where nobody renews its lease.
type room chan struct{}

func newRoom(size int) room {
	r := make(room, size)
	for range size {
		r.free()
	}
	return r
}

// free gives one place back. A server that was asked twice may have sent more than there was room for, so that there may be none to give back.
func (r room) free() {
	select {
	case r <- struct{}{}:
	default:
	}
}

// source is a consumer that was opened, and what becomes of its messages. What it had fetched may still be taken when the next one is open.
type source struct {
	cons     jetstream.Consumer
	take     func(*message) error // gets the messages; an error means trouble with the consumer
	caughtUp <-chan struct{}      // closed when the messages that were there have been taken

	// check finds out whether the consumer misses something, which it can while it gives signs of life. It is called at once, after each poke, and at
	// times, which is a tick. nil: there is no need.
	check func(ctx context.Context, tick bool) error
	poke  <-chan struct{}
}

// pullDurable makes a puller of a durable consumer of the topology.
func (b *Bus) pullDurable(stream, consumer string, ahead int, take func(*message)) *puller {
	caughtUp := make(chan struct{}) // there is nothing to wait for
	close(caughtUp)
	return &puller{
		bus: b, name: consumer, ahead: ahead,
		open: func(ctx context.Context) (*source, error) {
			if _, err := topology.ConsumerInfo(ctx, b.nc, stream, consumer); err != nil { // it is asked until it has a leader
				return nil, fmt.Errorf("opening consumer %s: %w", consumer, err)
			}
			cons, err := b.js.Consumer(ctx, stream, consumer)
			if err != nil {
				return nil, fmt.Errorf("opening consumer %s: %w", consumer, err)
			}
			return &source{cons: cons, take: func(m *message) error { take(m); return nil }, caughtUp: caughtUp}, nil
		},
	}
}

// createConsumer makes a consumer for one reader. It asks more than once while there is no answer: a request from before an election is never answered.
// The name makes all of them the same consumer.
func (b *Bus) createConsumer(ctx context.Context, stream string, cfg jetstream.ConsumerConfig) (cons jetstream.Consumer, err error) {
	cfg.Name = rand.Text()
	for {
		try, cancel := context.WithTimeout(ctx, createTry)
		cons, err = b.js.CreateConsumer(try, stream, cfg)
		again := err != nil && try.Err() != nil && ctx.Err() == nil
		cancel()
		if !again {
			return cons, err
		}
	}
}

// start begins to pull and returns when that works and the messages that were there have been taken, or at the end of ctx.
func (p *puller) start(ctx context.Context) error {
	p.first = make(chan struct{})
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	p.wg.Go(func() { p.run(runCtx) })
	select {
	case <-p.first:
		return nil
	case <-ctx.Done():
		p.stop()
		return fmt.Errorf("opening %s: %w", p.name, ended(ctx))
	}
}

// stop ends the pulling. What was fetched from a durable consumer is still taken when the connection is up.
func (p *puller) stop() {
	p.cancel()
	p.wg.Wait()
}

func (p *puller) run(ctx context.Context) {
	p.bus.session.drip(+1)
	defer p.bus.session.drip(-1)
	first := sync.OnceFunc(func() { close(p.first) })
	told := false // of the trouble
	works := func() {
		first()
		if told {
			p.bus.log.Info("NATS delivers again", slog.String("consumer", p.name))
		}
		told = false
	}
	for {
		epoch := p.bus.session.next()
		err := p.round(ctx, works)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			continue // a new epoch
		}
		if errors.Is(err, errStalled) {
			p.stalls++
		}
		if !told {
			p.bus.log.Warn("NATS delivers nothing", slog.String("consumer", p.name), slog.Any("error", err))
		}
		told = true
		select {
		case <-time.After(reopenPause):
		case <-epoch:
		case <-ctx.Done():
			return
		}
	}
}

// round pulls from one consumer until that has an end. works is called when all is well with it; the error says what is not.
func (p *puller) round(ctx context.Context, works func()) error {
	begun := p.bus.session.now() // before opening, so that what comes is of this time or a later one
	src, err := p.opened(ctx)
	if err != nil {
		if p.bus.online() && !errors.Is(err, topology.ErrNoAnswer) && !errors.Is(err, context.DeadlineExceeded) { // an election is no sign that something is missing
			p.bus.session.doubt()
		}
		return err
	}
	dry := true
	delivers := func() {
		if dry {
			dry = false
			p.stalls = 0
			p.bus.session.drip(-1)
			works()
		}
	}
	defer func() {
		if !dry {
			p.bus.session.drip(+1)
		}
	}()
	for {
		if err := p.pull(ctx, src, begun, delivers); !errors.Is(err, errAllCame) {
			return err
		}
	}
}

// errAllCame says that as many messages have come as there was room for.
var errAllCame = errors.New("all messages that there was room for have come")

// pull pulls as many messages as there is room for, until the consumer has an end. delivers is called when all is well.
func (p *puller) pull(ctx context.Context, src *source, begun moment, delivers func()) error {
	room := p.reserve(ctx, begun)
	if room == 0 && p.room != nil {
		return nil
	}
	var came atomic.Int64
	free := func() {
		for range max(0, room-int(came.Load())) {
			p.room.free()
		}
	}
	trouble := make(chan error, 1)
	options := []jetstream.PullConsumeOpt{
		jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			if p.anew || isGone(err) || errors.Is(err, jetstream.ErrNoHeartbeat) { // else it pulls again by itself
				report(trouble, err)
			}
		}),
	}
	if p.room == nil {
		options = append(options, jetstream.PullMaxMessages(p.ahead))
	} else {
		options = append(options, jetstream.PullMaxMessages(min(p.ahead, room)), jetstream.StopAfter(room))
	}
	cc, err := src.cons.Consume(
		func(msg jetstream.Msg) {
			came.Add(1)
			m := &message{Msg: msg, bus: p.bus}
			m.losses.Store(begun.losses)
			if err := src.take(m); err != nil {
				report(trouble, err)
			}
		}, options...)
	if err != nil {
		free()
		return fmt.Errorf("pulling: %w", err)
	}
	defer p.end(cc, free)
	if src.check != nil {
		defer p.keepChecking(ctx, src, trouble)()
	}
	caughtUp, epoch := src.caughtUp, begun.epoch
	for {
		select {
		case <-caughtUp:
			caughtUp = nil
			delivers()
		case err := <-trouble:
			if !p.anew && errors.Is(err, jetstream.ErrNoHeartbeat) {
				return nil // a new leader of the consumer does not know of the pull
			}
			return err
		case <-cc.Closed():
			if p.room != nil && int(came.Load()) == room {
				return errAllCame
			}
			return errEnded
		case <-epoch:
			now := p.bus.session.now()
			if p.outdated(begun, now) {
				return nil
			}
			epoch = now.epoch // it was opened since; to end a pull costs time, because what is sent for it just then is lost until it is sent again
		case <-ctx.Done():
			return nil
		}
	}
}

// reserve takes all the room that there is, and waits until there is some. It is 0 when it is no use to wait any longer, and without limits.
func (p *puller) reserve(ctx context.Context, begun moment) (room int) {
	if p.room == nil {
		return 0
	}
	for epoch := begun.epoch; room == 0; {
		select {
		case <-p.room:
			room = 1
		case <-epoch:
			now := p.bus.session.now()
			if p.outdated(begun, now) {
				return 0
			}
			epoch = now.epoch
		case <-ctx.Done():
			return 0
		}
	}
	for {
		select {
		case <-p.room:
			room++
		default:
			return room
		}
	}
}

// outdated says whether a consumer has to be opened again that was opened at some time.
func (p *puller) outdated(opened, now moment) bool {
	return now.losses != opened.losses || p.anew && now.breaks != opened.breaks
}

// keepChecking looks whether src misses something. Stalls in a row make it more patient.
func (p *puller) keepChecking(ctx context.Context, src *source, trouble chan<- error) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	every := checkEvery << min(p.stalls, maxPatience)
	var checking sync.WaitGroup
	checking.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for tick := false; ; {
			err := src.check(ctx, tick)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				report(trouble, err)
			}
			select {
			case <-src.poke:
				tick = false
			case <-ticker.C:
				tick = true
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		checking.Wait()
	}
}

var errEnded = errors.New("consumer has ended")

// isGone says whether err, of a consumer, means that it is not there.
func isGone(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrBadRequest)
}

func report(trouble chan<- error, err error) {
	select {
	case trouble <- err:
	default: // an earlier one is not handled yet
	}
}

// opened opens. Failures in a row make it more patient, but not soon: the server may have given the consumer to a node that has died.
func (p *puller) opened(ctx context.Context) (*source, error) {
	ctx, cancel := context.WithTimeout(ctx, tryLimit(p.failed-openTries))
	defer cancel()
	src, err := p.open(ctx)
	if err != nil {
		p.failed++
		return nil, err
	}
	p.failed = 0
	return src, nil
}

// end ends a pull. done is called when nothing will come of it any more.
func (p *puller) end(cc jetstream.ConsumeContext, done func()) {
	if p.anew {
		cc.Stop()
		<-cc.Closed()
		done()
		return
	}
	if p.bus.online() {
		cc.Drain()
	} else {
		cc.Stop() // draining would ask the server first
	}
	p.wg.Go(func() {
		<-cc.Closed()
		done()
	})
}

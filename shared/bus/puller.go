package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	pullExpiry    = 10 * time.Second
	pullHeartbeat = 2 * time.Second // two missing ones: the server that had the consumer is gone
	openLimit     = 2 * time.Second
	reopenPause   = 250 * time.Millisecond
	catchUpLimit  = 15 * time.Second // the rest may have expired before it was sent
)

// puller keeps messages of a JetStream consumer coming, whatever happens to the consumer, to its stream or to the server.
type puller struct {
	bus   *Bus
	name  string               // for the log
	ahead int                  // messages that are fetched ahead
	take  func(*message) error // gets the messages; an error means trouble with the consumer

	// open finds or creates the consumer. The channel is closed when the messages that were there have been taken.
	open func(context.Context) (cons jetstream.Consumer, caughtUp <-chan struct{}, err error)

	// anew has it start over after each trouble, with another consumer; no message of an earlier one comes then. Without it a consumer is used as
	// long as it is there, and what it had fetched is still taken afterwards, beside the messages of the next one.
	anew bool

	first  chan struct{} // closed when it works for the first time
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// pullDurable makes a puller of a durable consumer of the topology.
func (b *Bus) pullDurable(stream, consumer string, ahead int, take func(*message)) *puller {
	caughtUp := make(chan struct{}) // there is nothing to wait for
	close(caughtUp)
	return &puller{
		bus: b, name: consumer, ahead: ahead,
		take: func(m *message) error { take(m); return nil },
		open: func(ctx context.Context) (jetstream.Consumer, <-chan struct{}, error) {
			cons, err := b.js.Consumer(ctx, stream, consumer)
			if err != nil {
				return nil, nil, fmt.Errorf("opening consumer %s: %w", consumer, err)
			}
			return cons, caughtUp, nil
		},
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

// stop ends the pulling. What was fetched is still taken when the connection is up, unless it starts over anew.
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
		err := p.round(ctx, works)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			continue // a new epoch
		}
		if !told {
			p.bus.log.Warn("NATS delivers nothing", slog.String("consumer", p.name), slog.Any("error", err))
		}
		told = true
		select {
		case <-time.After(reopenPause):
		case <-ctx.Done():
			return
		}
	}
}

// round pulls from one consumer until that has an end. works is called when all is well with it; the error says what is not.
func (p *puller) round(ctx context.Context, works func()) error {
	epoch, losses := p.bus.session.next(), p.bus.session.lossCount() // before opening, so that what comes is of this epoch or a later one
	cons, caughtUp, err := p.opened(ctx)
	if err != nil {
		p.bus.session.doubt()
		return err
	}
	trouble := make(chan error, 1)
	cc, err := cons.Consume(
		func(msg jetstream.Msg) {
			m := &message{Msg: msg, bus: p.bus}
			m.losses.Store(losses)
			if err := p.take(m); err != nil {
				report(trouble, err)
			}
		},
		jetstream.PullMaxMessages(p.ahead), jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			if p.anew || isGone(err) { // else it pulls again by itself
				report(trouble, err)
			}
		}))
	if err != nil {
		return fmt.Errorf("pulling: %w", err)
	}
	defer p.end(cc)
	late := time.NewTimer(catchUpLimit)
	defer late.Stop()
	for {
		select {
		case <-caughtUp:
			caughtUp = nil
			late.Stop()
			p.bus.session.drip(-1)
			defer p.bus.session.drip(+1)
			works()
		case <-late.C:
			return errLate
		case err := <-trouble:
			return err
		case <-cc.Closed():
			return errEnded
		case <-epoch:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

var (
	errEnded = errors.New("consumer has ended")
	errLate  = errors.New("messages that were there do not come")
)

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

func (p *puller) opened(ctx context.Context) (jetstream.Consumer, <-chan struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	return p.open(ctx)
}

func (p *puller) end(cc jetstream.ConsumeContext) {
	if p.anew {
		cc.Stop()
		<-cc.Closed()
		return
	}
	if p.bus.online() {
		cc.Drain()
	} else {
		cc.Stop() // draining would ask the server first
	}
	p.wg.Go(func() { <-cc.Closed() })
}

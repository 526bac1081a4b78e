package execute

import (
	"context"
	"sync"
	"time"

	"hydrallm/shared/contract"
)

// Sink takes an answer on its way to the client. Frames may be collected until Flush; Data may wait for a slow client.
type Sink interface {
	Head(h contract.Head) error
	Data(ctx context.Context, p []byte) error
	End(e contract.End) error
	Flush() error
}

// maxHeld bounds what the gate keeps before it commits.
const maxHeld = 1 << 20

// Gate outcomes, the label values of its metric.
const (
	gateContent  = "content"
	gateTimeout  = "timeout"
	gateOverflow = "overflow"
	gateError    = "error"
)

// gate holds the status line and the first bytes of a stream back until it is decided whether this upstream answers. It is used by
// the goroutine that reads the upstream and by the timer.
type gate struct {
	ctx  context.Context //nolint:containedctx // the gate lives as long as one upstream call
	sink Sink
	head contract.Head

	mu      sync.Mutex
	held    []byte
	outcome string // "" while undecided
	err     error  // of the commit
	opened  func(outcome string)
	timer   *time.Timer
}

// newGate starts the clock of a gate; opened is called once, when the gate commits.
func newGate(ctx context.Context, sink Sink, head contract.Head, limit time.Duration, opened func(outcome string)) *gate {
	g := &gate{ctx: ctx, sink: sink, head: head, opened: opened}
	g.mu.Lock() // a short limit may be over before the timer is known here
	defer g.mu.Unlock()
	g.timer = time.AfterFunc(limit, g.expire)
	return g
}

// write passes p on, or holds it while nothing decisive has come.
func (g *gate) write(p []byte, decisive bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.outcome == "" {
		g.held = append(g.held, p...)
		switch {
		case decisive:
			g.commit(gateContent)
		case len(g.held) > maxHeld:
			g.commit(gateOverflow)
		}
		return g.err
	}
	if g.err != nil {
		return g.err
	}
	return g.sink.Data(g.ctx, p)
}

// expire commits a stream that is slow: slow is not broken.
func (g *gate) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.outcome != "" {
		return
	}
	g.commit(gateTimeout)
	if g.err == nil {
		g.err = g.sink.Flush()
	}
}

// commit must be called with mu held.
func (g *gate) commit(outcome string) {
	g.outcome = outcome
	g.timer.Stop()
	g.opened(outcome)
	if g.err = g.sink.Head(g.head); g.err == nil {
		g.err = g.sink.Data(g.ctx, g.held)
	}
	g.held = nil
}

// discard closes an undecided gate for good and forgets what it held. It is false when the stream is committed already.
func (g *gate) discard() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer.Stop()
	if g.outcome == "" {
		g.outcome, g.held = gateError, nil
	}
	return g.outcome == gateError
}

// flush sends what is committed.
func (g *gate) flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.outcome == "" || g.outcome == gateError {
		return nil
	}
	if g.err != nil {
		return g.err
	}
	return g.sink.Flush()
}

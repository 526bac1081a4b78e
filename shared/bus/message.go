package bus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// message is a message of a stream as it was delivered to this process.
type message struct {
	jetstream.Msg

	bus    *Bus
	losses atomic.Int64 // of the connection, when the stream was last known to have the message
}

var errForgotten = errors.New("server does not have the message any more")

const verifyLimit = 2 * time.Second

// settle tells the server what became of the message. A stream in memory begins to count anew after an outage, so that the number of the
// message may be that of another one then: nothing is said of it before it is certain which one is meant.
func (m *message) settle(how func(jetstream.Msg) error) error {
	if err := m.verify(); err != nil {
		return err
	}
	return how(m.Msg)
}

//nolint:contextcheck,nolintlint // it is seen at the callers: who settles a message has no context that says how long that may take
func (m *message) verify() error {
	losses := m.bus.session.lossCount()
	if m.losses.Load() == losses {
		return nil
	}
	ctx, cancel := context.WithTimeout(m.bus.session.life, verifyLimit)
	defer cancel()
	meta, err := m.Metadata()
	if err != nil {
		return fmt.Errorf("reading the number of a message: %w", err)
	}
	stream, err := m.bus.js.Stream(ctx, meta.Stream)
	if err != nil {
		return fmt.Errorf("looking for a message: %w", err)
	}
	stored, err := stream.GetMsg(ctx, meta.Sequence.Stream)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && stored.Header.Get(nats.MsgIdHdr) != m.Headers().Get(nats.MsgIdHdr) {
		return errForgotten
	}
	if err != nil {
		return fmt.Errorf("looking for a message: %w", err)
	}
	m.losses.Store(losses)
	return nil
}

package bus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrWorkFull says that the request stream takes no more: its consumers are too far behind.
var ErrWorkFull = errors.New("request stream is full")

// How long one try waits for the server to say that it has a message. A leader that dies never says so; the message has an id by which its
// successor recognises it.
const (
	firstAckWait = 5 * time.Second
	lastAckWait  = 10 * time.Second
)

// Pauses between two tries.
const (
	firstStorePause = 50 * time.Millisecond
	lastStorePause  = 250 * time.Millisecond
)

var errNoAck = errors.New("server does not acknowledge in time")

// store publishes msg and returns when its stream has it. While the server is away or elects a leader it waits, until ctx ends.
func (b *Bus) store(ctx context.Context, msg *nats.Msg) error {
	_, err := b.storeAt(ctx, msg)
	return err
}

// storeAt is store; it gives the place of the message in the stream.
func (b *Bus) storeAt(ctx context.Context, msg *nats.Msg) (sequence uint64, err error) {
	wait := firstAckWait
	err = b.persist(ctx, func() (err error) {
		sequence, err = b.storeOnce(ctx, msg, wait)
		wait = min(2*wait, lastAckWait)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("publishing to %s: %w", msg.Subject, err)
	}
	return sequence, nil
}

func (b *Bus) storeOnce(ctx context.Context, msg *nats.Msg, wait time.Duration) (sequence uint64, err error) {
	epoch := b.session.next()
	future, err := b.js.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case ack := <-future.Ok():
		return ack.Sequence, nil
	case err := <-future.Err():
		return 0, err
	case <-timeout.C:
		return 0, errNoAck
	case <-epoch: // who had it may be gone
		return 0, errNoAck
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// persist tries something until it succeeds, fails for a reason that will not pass, or ctx ends.
func (b *Bus) persist(ctx context.Context, try func() error) error {
	for pause := firstStorePause; ; pause = min(2*pause, lastStorePause) {
		if !b.online() { // nothing is gained by filling the buffer of the connection
			if err := b.session.await(ctx); err != nil {
				return err
			}
		}
		epoch := b.session.next()
		err := try()
		switch {
		case err == nil || !passing(err):
			return err
		case ctx.Err() != nil: // for which err may be no sign
			return errors.Join(err, context.Cause(ctx))
		}
		if errors.Is(err, jetstream.ErrNoStreamResponse) {
			b.session.doubt()
		}
		select {
		case <-time.After(pause):
		case <-epoch:
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// API error codes of the server.
const (
	jsErrStreamFull jetstream.ErrorCode = 10077 // it refuses by size, or its store fails
	jsErrNotLeader  jetstream.ErrorCode = 10009
	jsErrInProcess  jetstream.ErrorCode = 10158 // it stores the message just now, from an earlier try; soon it counts as a duplicate, which is no error
)

// storeClosed is what the description of jsErrStreamFull is (ErrStoreClosed of the server) when the server is about to stop.
const storeClosed = "store is closed"

// full says whether err is the refusal of a stream that is full.
func full(err error) bool {
	api, ok := errors.AsType[jetstream.JetStreamError](err)
	return ok && api.APIError() != nil && api.APIError().ErrorCode == jsErrStreamFull && api.APIError().Description != storeClosed
}

// passing says whether err is the state of the server, which will be another one soon.
func passing(err error) bool {
	if api, ok := errors.AsType[jetstream.JetStreamError](err); ok && api.APIError() != nil {
		code := api.APIError().ErrorCode
		return code == jsErrNotLeader || code == jsErrInProcess || api.APIError().Code == http.StatusServiceUnavailable && !full(err)
	}
	return slices.ContainsFunc(passingErrors, func(passing error) bool { return errors.Is(err, passing) })
}

var passingErrors = []error{
	errNoAck, jetstream.ErrNoStreamResponse, jetstream.ErrTooManyStalledMsgs, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrReconnectBufExceeded,
	nats.ErrConnectionReconnecting, nats.ErrTimeout,
}

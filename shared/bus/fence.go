package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// ErrNoOwner says that the ingress which owns a request is not there: it has died, and its clients with it.
var ErrNoOwner = errors.New("owner of the request is gone")

// How another process is asked. NATS says at once when nobody listens, but that may be one who is connecting again, so that it is asked anew. One
// who listens and does not answer is slow, or the question was lost.
const (
	askLimit    = time.Second
	askPause    = time.Second
	absentAfter = 3 // times that nobody listens until a process counts as gone
	askRetry    = time.Second
)

// ask puts a question until it is answered, for as long as ctx allows. The error is nats.ErrNoResponders when the one who is asked is gone.
func (b *Bus) ask(ctx context.Context, subj string, question []byte) ([]byte, error) {
	for absent := 0; ; {
		answer, err := b.askOnce(ctx, subj, question)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			if absent++; absent == absentAfter {
				return nil, err
			}
		case errors.Is(err, context.DeadlineExceeded):
			absent = 0
		default: // the connection is lost
			absent = 0
			if err := b.session.await(ctx); err != nil {
				return nil, err
			}
		}
		select {
		case <-time.After(askPause):
		case <-ctx.Done():
			return nil, ended(ctx)
		}
	}
}

func (b *Bus) askOnce(ctx context.Context, subj string, question []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	m, err := b.nc.RequestWithContext(ctx, subj, question)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// Fence asks the ingress that owns a request whether a delivery may run (delivery rule 3). The error is ErrNoOwner when the ingress has died.
func (b *Bus) Fence(ctx context.Context, ingress string, q contract.FenceQuestion) (a contract.FenceAnswer, err error) {
	question, err := json.Marshal(q)
	if err != nil {
		return a, fmt.Errorf("encoding a question: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*topology.AckWait)
	defer cancel()
	answer, err := b.ask(ctx, subject.Fence(ingress), question)
	if errors.Is(err, nats.ErrNoResponders) {
		return a, ErrNoOwner
	}
	if err == nil {
		err = json.Unmarshal(answer, &a)
	}
	if err != nil {
		return a, fmt.Errorf("asking the owner of a request: %w", err)
	}
	return a, nil
}

// Owner is an ingress as workers see it. Its methods must not block.
type Owner interface {
	// Fence decides whether a delivery may run that another worker may have had.
	Fence(q contract.FenceQuestion) contract.FenceAnswer
	// Alive takes in that a worker has a request. It says whether somebody waits for it, and has all that was sent.
	Alive(worker string, s contract.Sign) contract.Heard
	// HandedBack takes in that a worker which stops gave a request back.
	HandedBack(s contract.Sign)
}

// ServeOwner answers workers that ask about the requests of an ingress, or report on them.
func (b *Bus) ServeOwner(ingress string, o Owner) (*Subscription, error) {
	var s Subscription
	for subj, handle := range map[string]nats.MsgHandler{
		subject.Fence(ingress): func(m *nats.Msg) { b.answerFence(o, m) },
		subject.Alive(ingress): func(m *nats.Msg) { b.takeSigns(m, o.Alive) },
		subject.HandBack(ingress): func(m *nats.Msg) {
			b.takeSigns(m, func(_ string, s contract.Sign) (fine contract.Heard) { o.HandedBack(s); return fine })
		},
	} {
		sub, err := b.nc.Subscribe(subj, handle)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("serving workers: %w", err), s.Stop())
		}
		s.subs = append(s.subs, sub)
	}
	if err := subscribed(b.nc); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return &s, nil
}

func (b *Bus) answerFence(o Owner, m *nats.Msg) {
	var q contract.FenceQuestion
	if err := json.Unmarshal(m.Data, &q); err != nil {
		b.log.Warn("a worker asks what can't be read", slog.Any("error", err))
		return
	}
	answer, err := json.Marshal(o.Fence(q))
	if err == nil {
		err = m.Respond(answer)
	}
	if err != nil {
		b.log.Warn("answering a worker", slog.Any("error", err)) // it asks again
	}
}

func (b *Bus) takeSigns(m *nats.Msg, take func(worker string, s contract.Sign) contract.Heard) {
	worker, signs, err := contract.Signs(m.Data)
	if err != nil {
		b.log.Warn("reading signs of life", slog.Any("error", err))
		return
	}
	var answer []byte
	for s, err := range signs {
		if err != nil {
			b.log.Warn("reading signs of life", slog.Any("error", err))
			break
		}
		if h := take(worker, s); !h.Fine() {
			h.RequestID = s.RequestID
			answer = contract.AppendHeard(answer, h)
		}
	}
	if m.Reply != "" {
		_ = m.Respond(answer) // it reports again
	}
}

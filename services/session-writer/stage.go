package sessionwriter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hydrallm/services/session-writer/internal/memory"
	"hydrallm/services/session-writer/internal/prompt"
	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/surface"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/topology"
)

const (
	maxInFlight   = 256                    // requests at the same time; they wait for the database
	maxDeliveries = 5                      // of a request that keeps coming back
	retryPause    = 200 * time.Millisecond // until a request is taken again
)

// What became of a request, the values of a metric.
const (
	endAssembled = "assembled"
	endUnstored  = "unstored" // it went on without history
	endRefused   = "refused"
	endRetried   = "retried"
	endPoison    = "poison"
)

// stage is the session's part in the way of a request: it loads the history, saves the user's turn and puts the prompt together.
type stage struct {
	sessions   *sessions
	stored     *stored
	database   *database
	compressor memory.Compressor // of histories
	log        *slog.Logger
	metrics    *metrics
}

// handle settles one delivery. A redelivery makes the same turn of the same request.
func (s *stage) handle(ctx context.Context, w *bus.Work) {
	ctx = telemetry.WithRequest(ctx, w.Request.ID)
	end, err := s.settle(ctx, w)
	s.metrics.requests.WithLabelValues(end).Inc()
	if err != nil {
		s.log.WarnContext(ctx, "session of a request", slog.String("end", end), slog.Uint64("delivery", w.Delivery), slog.Any("error", err))
	}
}

func (s *stage) settle(ctx context.Context, w *bus.Work) (end string, err error) {
	if len(w.Lost) >= maxDeliveries {
		reason := fmt.Sprintf("given up after %d deliveries", len(w.Lost))
		return endPoison, errors.Join(errors.New(reason), w.Refuse(ctx, fault.New(fault.Internal, "Internal server error")),
			w.Dead(ctx, topology.Session, reason), w.Discard(ctx))
	}
	body, end, err := s.begin(ctx, w.Request, w.Body, w.Delivery > 1)
	if f, refused := errors.AsType[*fault.Fault](err); refused {
		if err := w.Refuse(ctx, f); err != nil {
			w.Retry(retryPause)
			return endRetried, err
		}
		w.Done()
		return endRefused, errors.Join(f.Cause, w.Discard(ctx))
	}
	if errors.Is(err, errCutOff) {
		if err = nil; !errors.Is(context.Cause(ctx), contract.ErrClientGone) { // another writer has the time for it
			w.Retry(retryPause)
			return endRetried, nil
		}
	}
	if failed := w.Forward(ctx, body); failed != nil {
		w.Retry(retryPause)
		return endRetried, errors.Join(err, failed)
	}
	return end, err
}

var errCutOff = errors.New("the work on the request was cut off")

var errNotFound = &fault.Fault{Kind: fault.NotFound, Code: "session_not_found", Message: "There is no such session, or no such message in it"}

// begin begins the turn of a request, which may have begun before, and gives its new body, nil for the old one. A *fault.Fault is the client's; any other
// error is only to be told.
func (s *stage) begin(ctx context.Context, r *contract.Request, body []byte, again bool) (edited []byte, end string, err error) {
	within, cancel := context.WithTimeout(ctx, s.database.beginLimit())
	defer cancel()
	if r.Previous != "" || r.References {
		if edited, err = s.inherit(within, r, body); err != nil && ctx.Err() != nil {
			return nil, endRetried, errCutOff
		} else if err != nil || r.SessionID == "" {
			return edited, endOf(err), err
		}
		body = edited
	}
	asked, err := prompt.Read(r.Surface, body)
	if err != nil { // the ingress has read it, but did not need its messages
		return nil, endRefused, unreadable(err)
	}
	if r.ForkFrom != "" {
		if err := s.fork(within, r); err != nil && ctx.Err() != nil {
			return nil, endRetried, errCutOff
		} else if err != nil {
			return nil, endRefused, err
		}
	}
	p, err := s.turn(within, r, asked, again)
	switch {
	case errors.Is(err, store.ErrNoSession):
		return nil, endRefused, errNotFound
	case err != nil && ctx.Err() != nil: // the client left, or the service is stopping
		return nil, endRetried, errCutOff
	case err != nil:
		return edited, endUnstored, s.unstored(ctx, r, asked, err)
	}
	if p.Body == nil {
		return edited, endAssembled, nil
	}
	if err := measure(r, p.Body); err != nil {
		return edited, endUnstored, s.unstored(ctx, r, asked, err)
	}
	return p.Body, endAssembled, nil
}

func endOf(err error) string {
	if err != nil {
		return endRefused
	}
	return endAssembled
}

// inherit puts the items of stored responses into a request. Without the database there is nothing that the request could do instead.
func (s *stage) inherit(ctx context.Context, r *contract.Request, body []byte) ([]byte, error) {
	edited, err := s.stored.resolve(ctx, r, body)
	if err == nil {
		err = measure(r, edited)
	}
	if _, ok := errors.AsType[*openai.RequestError](err); ok {
		return nil, unreadable(err)
	}
	if _, ok := errors.AsType[*fault.Fault](err); err != nil && !ok {
		return nil, &fault.Fault{Kind: fault.Unavailable, Message: "Stored responses can't be read at the moment", RetryAfter: time.Second, Cause: err}
	}
	return edited, err
}

// unreadable is what the client gets for a request that can't be read.
func unreadable(err error) *fault.Fault {
	if bad, ok := errors.AsType[*openai.RequestError](err); ok {
		return &fault.Fault{Kind: fault.Invalid, Message: bad.Message, Param: bad.Param, Code: bad.Code}
	}
	return fault.From(err)
}

// turn reads the history and saves the question.
func (s *stage) turn(ctx context.Context, r *contract.Request, asked *prompt.Request, again bool) (p prompt.Prompt, err error) {
	ask := store.Ask{Session: r.SessionID, Request: r.ID, Principal: r.Principal, Surface: r.Surface, At: r.ReceivedAt, Again: again}
	if ask.Pending, ask.Applied, err = s.sessions.pending(ctx, r.SessionID); err != nil {
		return p, err
	}
	var loaded []prompt.Message
	err = s.sessions.store.BeginTurn(ctx, ask, func(history []store.Message) []store.Message {
		loaded = promptMessages(history)
		p = asked.Assemble(loaded)
		fresh := make([]store.Message, len(p.Fresh))
		for i, m := range p.Fresh {
			fresh[i] = store.NewMessage(m)
		}
		return fresh
	})
	s.database.wrote(ctx, err)
	if err == nil && r.CompressContext != nil && *r.CompressContext { // outside of the transaction, because it may take long
		s.shorten(ctx, loaded)
		p = asked.Assemble(loaded)
	}
	return p, err
}

// shortenLimit bounds the time of a compressor for all messages of a history.
const shortenLimit = 3 * time.Second

// shorten makes the texts of a history shorter.
func (s *stage) shorten(ctx context.Context, history []prompt.Message) {
	ctx, cancel := context.WithTimeout(ctx, shortenLimit)
	defer cancel()
	for i := range history {
		short, err := memory.Shorten(ctx, s.compressor, history[i].Body)
		if err != nil {
			s.log.WarnContext(ctx, "a history is sent as it is", slog.Any("error", err))
			return
		}
		history[i].Sent = short
	}
}

func promptMessages(history []store.Message) []prompt.Message {
	list := make([]prompt.Message, len(history))
	for i := range history {
		list[i] = prompt.Message{Message: history[i].Message(), Surface: contract.Surface(history[i].Surface), Summary: history[i].Summary()}
	}
	return list
}

// fork makes the request one of a new session that begins with a part of its own. The database has to be there for it.
func (s *stage) fork(ctx context.Context, r *contract.Request) error {
	err := s.sessions.catchUp(ctx, r.SessionID)
	id := store.ForkID(r.ID, r.ReceivedAt)
	if err == nil {
		_, err = s.sessions.store.Fork(ctx, store.Fork{Source: r.SessionID, Point: r.ForkFrom, Principal: r.Principal, ID: id})
	}
	switch {
	case errors.Is(err, store.ErrNoSession):
		return errNotFound
	case err != nil:
		return &fault.Fault{Kind: fault.Unavailable, Message: "The session can't be forked at the moment", RetryAfter: time.Second, Cause: err}
	}
	r.SessionID = id
	return nil
}

// unstored lets a request go on without history. Its question becomes a fact, so that nothing is lost. It gives what is to be told.
func (s *stage) unstored(ctx context.Context, r *contract.Request, asked *prompt.Request, cause error) error {
	r.NoHistory = true
	cause = fmt.Errorf("the request goes on without its history: %w", cause)
	if err := s.sessions.keepQuestion(ctx, r, asked.Assemble(nil).Fresh); err != nil {
		return errors.Join(cause, fmt.Errorf("the question is lost: %w", err))
	}
	return cause
}

// measure notes what is in the body of a request now, for the stages behind.
func measure(r *contract.Request, body []byte) error {
	var scan contract.Request
	if err := surface.FormOf(r.Surface).Scan(body, &scan); err != nil {
		return fmt.Errorf("reading the prompt: %w", err)
	}
	t := scan.Traits
	r.Traits.Tokens, r.Traits.Images, r.Traits.Audio, r.Traits.Files = t.Tokens, t.Images, t.Audio, t.Files
	if d := r.Decision; d != nil {
		d.Tokens, d.Needs = t.Tokens, r.Traits.Needs()
	}
	return nil
}

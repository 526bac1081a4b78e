package execute

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

// grace is how long a finished stream may still bring its usage before the gateway ends it (STR-01).
const grace = 2 * time.Second

var errGraceOver = errors.New("finished, and nothing more came")

// passEvents passes an event stream on. It returns when the stream has ended, one way or the other.
func (a *attempt) passEvents(ctx context.Context, resp *upstream.Response, body io.Reader) classify.Verdict {
	defer resp.Close()
	if !a.req.stream() {
		return a.collect(ctx, resp, body)
	}
	b := takeBuffers(body)
	defer b.giveBack()
	s := &relay{attempt: a, resp: resp, buffers: b, filter: stream.NewFilter(a.streamOptions()), graceLeft: grace}
	verdict := s.run(ctx)
	if verdict.Class == classify.Success {
		resp.Drain(drainLimit)
	}
	return verdict
}

// buffers is what a stream needs of memory, used again by the next one.
type buffers struct {
	events openai.Reader
	out    []byte
}

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

// keptBuffer is the largest output buffer that is kept.
const keptBuffer = 64 << 10

func takeBuffers(body io.Reader) *buffers {
	b := bufferPool.Get().(*buffers) //nolint:forcetypeassert // the pool holds nothing else
	b.events.Reset(body, maxEvent)
	return b
}

func (b *buffers) giveBack() {
	b.events.Reset(nil, maxEvent)
	if cap(b.out) > keptBuffer {
		b.out = nil
	}
	bufferPool.Put(b)
}

// maxEvent bounds one event of an upstream; it is what the official Go SDK accepts.
const maxEvent = 32 << 20

// committed notes that the client has a status line from here on.
func (a *attempt) committed(outcome string) {
	a.begin()
	a.Metrics.gate(outcome)
}

// begin notes that nothing may be taken back any more.
func (a *attempt) begin() {
	a.answered = true
	a.usage.FirstTokenMS = time.Since(a.job.Request.ReceivedAt).Milliseconds()
}

// relay is one event stream on its way.
type relay struct {
	*attempt
	*buffers
	resp   *upstream.Response
	filter *stream.Filter
	gate   *gate

	begun      bool        // an event came
	idleTimer  *time.Timer // while an unfinished stream is waited for
	graceTimer *time.Timer // while a finished one is
	graceLeft  time.Duration
}

func (s *relay) run(ctx context.Context) classify.Verdict {
	sending, stop := delivery(s.resp.Context())
	defer stop()
	s.gate = newGate(sending, s.sink, s.head(contentEvents), s.Limits.GateTimeout, s.committed) //nolint:contextcheck // it lives as long as the call
	defer s.gate.timer.Stop()
	for {
		event, err := s.next()
		if err != nil {
			return s.ended(ctx, err)
		}
		step := s.filter.Event(s.out[:0], event)
		s.out = step.Out
		switch {
		case step.Problem != nil:
			if v, bad := s.eventVerdict(s.resp, step.Problem); bad {
				return s.broken(ctx, v)
			}
		case step.Done:
			return s.finish(ctx)
		}
		if err := s.write(step); err != nil {
			return s.unwritten(ctx, err)
		}
	}
}

// eventVerdict classifies an event that is an error or may be one. What is neither an answer nor an error is dropped.
func (a *attempt) eventVerdict(resp *upstream.Response, problem []byte) (v classify.Verdict, bad bool) {
	answer := a.answerOf(resp, problem)
	answer.Event = true
	v = classify.Of(answer)
	if v.Class == classify.Success && !gjson.ValidBytes(problem) {
		v = classify.Ended(classify.ErrTruncated)
	}
	return v, v.Class != classify.Success
}

// write passes the output of one event on, together with what is ready right behind it.
func (s *relay) write(step stream.Step) error {
	if len(step.Out) > 0 || step.Decisive {
		if err := s.gate.write(step.Out, step.Decisive); err != nil {
			return err
		}
	}
	if s.events.Buffered() {
		return nil
	}
	return s.gate.flush()
}

// next waits for an event. Only this waiting counts as silence of the upstream, not the time that a slow client takes.
func (s *relay) next() (openai.Event, error) {
	if s.events.Buffered() {
		return s.events.Next()
	}
	if s.filter.Finished() {
		return s.last()
	}
	limit := s.Limits.IdleTimeout
	switch {
	case limit == 0 || !s.begun:
	case s.idleTimer == nil:
		s.idleTimer = time.AfterFunc(limit, func() { s.resp.Abort(classify.ErrIdleTimeout) })
	default:
		s.idleTimer.Reset(limit)
	}
	event, err := s.events.Next()
	s.begun = true
	if s.idleTimer != nil {
		s.idleTimer.Stop()
	}
	return event, err
}

// last waits for what may follow the finish; signs of life do not extend the wait.
func (s *relay) last() (openai.Event, error) {
	since := time.Now()
	if s.graceTimer == nil {
		s.graceTimer = time.AfterFunc(s.graceLeft, func() { s.resp.Abort(errGraceOver) })
	} else {
		s.graceTimer.Reset(max(s.graceLeft, 0))
	}
	event, err := s.events.Next()
	s.graceTimer.Stop()
	s.graceLeft -= time.Since(since)
	return event, err
}

// ended decides about a stream whose body is over: finished, even without [DONE], or broken off.
func (s *relay) ended(ctx context.Context, err error) classify.Verdict {
	switch {
	case s.filter.Finished(), ctx.Err() == nil && errors.Is(err, io.EOF): // many upstreams give one answer where several are asked for
		return s.finish(ctx)
	default:
		return s.broken(ctx, s.cutOff(ctx, s.resp.Context(), err))
	}
}

// finish sends the end of a complete stream. A stream that brought nothing decisive is none.
func (s *relay) finish(ctx context.Context) classify.Verdict {
	out, err := s.filter.End(s.out[:0])
	if err != nil {
		return s.broken(ctx, classify.Ended(err))
	}
	verdict := classify.Verdict{Class: classify.Success}
	s.countUsage(s.filter.Usage())
	s.settle(verdict)
	if err := s.gate.write(out, true); err != nil {
		return s.unwritten(ctx, err)
	}
	return verdict
}

// broken ends a stream that failed: before the commit nothing of it reaches the client, after it the client gets what is held back, one
// error event, and no [DONE].
func (s *relay) broken(ctx context.Context, v classify.Verdict) classify.Verdict {
	if s.gate.discard() {
		if v.Class != classify.Cancelled {
			s.Metrics.gate(gateError)
		}
		return v
	}
	s.countUsage(s.filter.Usage())
	s.settle(v)
	if errors.Is(context.Cause(ctx), classify.ErrClientGone) {
		return v
	}
	out := s.filter.Abort(s.out[:0])
	out = errBrokeOff.AppendEvent(out)
	s.cut = s.gate.write(out, true) != nil
	return v
}

// errBrokeOff is what the client of a committed stream gets. The reason is in the log.
var errBrokeOff = &fault.Fault{Kind: fault.Internal, Message: "The upstream failed while it was answering", Code: "upstream_error"}

// unwritten is for a stream that the client did not take: its fault or the pipeline's, not the upstream's.
func (s *relay) unwritten(ctx context.Context, err error) classify.Verdict {
	s.countUsage(s.filter.Usage())
	return s.attempt.unwritten(ctx, err)
}

func (a *attempt) countUsage(u stream.Usage) {
	a.usage.Prompt, a.usage.Completion, a.usage.Total = u.Prompt, u.Completion, u.Total
}

package execute

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

const (
	// grace is how long a stream that looks finished may still bring its usage before the gateway ends it (STR-01).
	grace = 2 * time.Second
	// longGrace is that of a stream that looked finished before, and was not.
	longGrace = 2 * grace
)

var errGraceOver = errors.New("finished, and nothing more came")

// room is what a stream needs of memory, used again by the next one.
type room struct {
	events openai.Reader
	chunks answer.Reader
	out    []byte
}

var roomPool = sync.Pool{New: func() any { return new(room) }}

// keptOutput is the largest output buffer that is kept.
const keptOutput = 64 << 10

// maxEvent bounds one event of an upstream; it is what the official Go SDK accepts.
const maxEvent = 32 << 20

func takeRoom(body io.Reader) *room {
	r := roomPool.Get().(*room) //nolint:forcetypeassert // the pool holds nothing else
	r.events.Reset(body, maxEvent)
	return r
}

func (r *room) giveBack() {
	r.events.Reset(nil, maxEvent)
	r.chunks.Reset(nil)
	if cap(r.out) > keptOutput {
		r.out = nil
	}
	roomPool.Put(r)
}

// relay is one event stream on its way to the client.
type relay struct {
	attempt *attempt
	resp    *upstream.Response
	source  answer.Source
	filter  *stream.Filter
	answer  surface.Answer
	gate    *gate
	out     []byte // of the event at hand
	turn    transcript

	native bool         // client and provider speak one protocol: events pass as they come
	event  answer.Chunk // the event at hand as it came

	begun      bool        // content came
	idleTimer  *time.Timer // while more of it is waited for
	graceTimer *time.Timer // while a finished one is
	graceLeft  time.Duration
}

// relay passes an event stream on. It returns when the stream has ended, one way or the other.
func (o *chat) relay(ctx context.Context, a *attempt, resp *dialect.Response) classify.Verdict {
	room := takeRoom(resp.Body)
	defer room.giveBack()
	s := &relay{
		attempt: a, resp: resp.Response, source: resp.Source(&room.events, &room.chunks), filter: stream.NewFilter(a.options(o)),
		native: resp.Native != "", out: room.out, graceLeft: grace,
	}
	told := a.disclosure()
	told.Native = s.native
	s.answer = o.request.Answer(told)
	if a.run.inSession() {
		s.turn.said = &stream.Transcript{}
	}
	verdict := s.run(ctx)
	if room.out = s.out; verdict.Class == classify.Success {
		resp.Drain(drainLimit)
	}
	return verdict
}

func (s *relay) run(ctx context.Context) classify.Verdict {
	sending, stop := delivery(s.resp.Context())
	defer stop()
	a := s.attempt
	s.gate = newGate(sending, a.run.sink, a.head(s.answer.ContentType()), a.run.gateTimeout(), func(outcome string) { //nolint:contextcheck // it lives as long as the call
		a.begin()
		a.run.exec.Metrics.gate(outcome)
	})
	defer s.gate.timer.Stop()
	for {
		c, err := s.next()
		if err != nil {
			return s.ended(ctx, err)
		}
		s.arrived(c)
		step := s.filter.Take(c)
		s.begun = s.begun || step.Decisive
		if step.Resumed {
			s.graceLeft = longGrace
		}
		switch {
		case step.Problem != nil:
			if v, bad := a.eventVerdict(s.resp, step.Problem); bad {
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

// gateTimeout is how long the begin of a stream may be held back. Nobody waits for the status line of a recorded answer, and another worker may begin
// it anew as long as there is no content: it is held back for longer than the request lives.
func (r *run) gateTimeout() time.Duration {
	if r.job.Request.Background {
		return time.Until(r.job.Request.StartBy) + time.Hour
	}
	return r.exec.Limits.GateTimeout
}

// eventVerdict classifies an event that is an error or may be one. What is neither an answer nor an error is dropped.
func (a *attempt) eventVerdict(resp *upstream.Response, problem []byte) (v classify.Verdict, bad bool) {
	found := a.answerOf(resp, problem)
	found.Event = true
	v = classify.Of(found)
	if v.Class == classify.Success && !gjson.ValidBytes(problem) {
		v = classify.Ended(classify.ErrTruncated)
	}
	return v, v.Class != classify.Success
}

// write passes the output of one event on, together with what is ready right behind it.
func (s *relay) write(step stream.Step) error {
	s.turn.take(step.Chunks)
	s.attempt.tellEnds(step.Chunks...)
	s.out = s.append(s.out[:0], step.Chunks)
	if len(s.out) > 0 || step.Decisive {
		if err := s.gate.write(s.out, step.Decisive); err != nil {
			return err
		}
	}
	if s.source.Buffered() {
		return nil
	}
	return s.gate.flush()
}

// arrived notes an event as it came.
func (s *relay) arrived(c *answer.Chunk) {
	if !s.native {
		return
	}
	s.event = answer.Chunk{Kind: c.Kind, Raw: c.Raw, Of: c.Of}
	if c.Kind == answer.Problem { // it may repeat the key that it was sent
		s.event.Raw = []byte(s.attempt.run.exec.Secrets.Replace(string(c.Raw)))
	}
}

// append appends what the client gets of an event: what the filter has made of it, or the event itself, once.
func (s *relay) append(dst []byte, chunks []*answer.Chunk) []byte {
	if s.native {
		dst = s.answer.Append(dst, &s.event)
		s.event = answer.Chunk{}
		return dst
	}
	for _, c := range chunks {
		dst = s.answer.Append(dst, c)
	}
	return dst
}

// next waits for an event. Only this waiting counts as silence of the upstream, not the time that a slow client takes, and only once content came:
// before that a model may think for as long as the other limits allow, whatever comments it sends meanwhile.
func (s *relay) next() (*answer.Chunk, error) {
	if s.source.Buffered() {
		return s.source.Next()
	}
	if s.filter.Settled() {
		return s.last()
	}
	limit := s.attempt.run.exec.Limits.IdleTimeout
	switch {
	case limit == 0 || !s.begun:
	case s.idleTimer == nil:
		s.idleTimer = time.AfterFunc(limit, func() { s.resp.Abort(classify.ErrIdleTimeout) })
	default:
		s.idleTimer.Reset(limit)
	}
	c, err := s.source.Next()
	if s.idleTimer != nil {
		s.idleTimer.Stop()
	}
	return c, err
}

// last waits for what may follow the finish; signs of life do not extend the wait.
func (s *relay) last() (*answer.Chunk, error) {
	since := time.Now()
	if s.graceTimer == nil {
		s.graceTimer = time.AfterFunc(s.graceLeft, func() { s.resp.Abort(errGraceOver) })
	} else {
		s.graceTimer.Reset(max(s.graceLeft, 0))
	}
	c, err := s.source.Next()
	s.graceTimer.Stop()
	s.graceLeft -= time.Since(since)
	return c, err
}

// ended decides about a stream whose body is over: finished, even without an end mark, or broken off.
func (s *relay) ended(ctx context.Context, err error) classify.Verdict {
	switch {
	case s.filter.Finished(), ctx.Err() == nil && errors.Is(err, io.EOF): // many upstreams give one answer where several are asked for
		return s.finish(ctx)
	default:
		return s.broken(ctx, s.attempt.cutOff(ctx, s.resp.Context(), err))
	}
}

// finish sends the end of a complete stream. A stream that brought nothing decisive is none.
func (s *relay) finish(ctx context.Context) classify.Verdict {
	end, err := s.filter.End()
	if err != nil {
		return s.broken(ctx, classify.Ended(err))
	}
	verdict := classify.Verdict{Class: classify.Success}
	s.attempt.countUsage(s.filter.Usage())
	s.attempt.settle(verdict)
	s.turn.take(end.Chunks)
	s.attempt.tellEnds(end.Chunks...)
	s.out = s.answer.End(s.append(s.out[:0], end.Chunks), end)
	if response := storedOf(s.answer); s.turn.said != nil || response != nil {
		if err := s.gate.flush(); err != nil { // nothing waits for the storing but the end
			return s.unwritten(ctx, err)
		}
		s.turn.keep(ctx, s.attempt, s.answer, contract.TurnAnswered)
		s.attempt.store(ctx, response)
	}
	if err := s.gate.write(s.out, true); err != nil {
		return s.unwritten(ctx, err)
	}
	return verdict
}

// broken ends a stream that failed: before the commit nothing of it reaches the client, after it the client gets what is held back, one
// error event, and no end mark.
func (s *relay) broken(ctx context.Context, v classify.Verdict) classify.Verdict {
	s.attempt.countUsage(s.filter.Usage())
	if s.gate.discard() {
		if v.Class != classify.Cancelled {
			s.attempt.run.exec.Metrics.gate(gateError)
		}
		return v
	}
	s.attempt.settle(v)
	rest := s.filter.Abort()
	s.turn.take(rest)
	s.turn.keep(ctx, s.attempt, s.answer, contract.TurnFailed)
	if errors.Is(context.Cause(ctx), classify.ErrClientGone) {
		return v
	}
	s.out = s.answer.Fail(s.append(s.out[:0], rest), errBrokeOff)
	s.attempt.store(ctx, storedOf(s.answer))
	if s.gate.write(s.out, true) != nil {
		s.attempt.sent = partly
	}
	return v
}

// errBrokeOff is what the client of a committed stream gets. The reason is in the log.
var errBrokeOff = &fault.Fault{Kind: fault.Internal, Message: "The upstream failed while it was answering", Code: "upstream_error"}

// unwritten is for a stream that the client did not take: its fault or the pipeline's, not the upstream's.
func (s *relay) unwritten(ctx context.Context, err error) classify.Verdict {
	s.attempt.countUsage(s.filter.Usage())
	s.turn.keep(ctx, s.attempt, s.answer, contract.TurnFailed)
	return s.attempt.unwritten(ctx, err)
}

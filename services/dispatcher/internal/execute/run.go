package execute

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/queue"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/telemetry"
)

// run is one job on its way through the chain.
type run struct {
	exec       *Executor
	job        Job
	op         operation
	sink       Sink
	record     contract.RequestRecord
	links      []link           // in the order in which they are tried
	queue      queue.Limits     // where the request may wait for one of them
	waiting    bool             // it does
	candidates []slot.Candidate // of the links
	history    history
	last       classify.Verdict // of the attempt before
	details    []byte           // of the last error, in the client's protocol
	passed     [][2]string      // headers of the last answer, where there is one upstream
	front      []byte           // message before all others
	sent       sent             // of the last call
	calls      int              // that were made, or were to be
}

func newRun(ctx context.Context, e *Executor, job Job, sink Sink) *run {
	r := &run{exec: e, job: job, sink: sink, record: contract.RequestRecord{
		RequestID: job.Request.ID, TraceID: telemetry.TraceID(ctx), SessionID: job.Request.SessionID, Principal: job.Request.Principal, Endpoint: job.Request.Endpoint(),
		Model: job.Request.Model, Stream: job.Request.Stream, RoutingReason: job.Request.Decision.Reason, Attempts: contract.LostCalls(job.Lost),
	}}
	if e.Front != nil {
		r.front = e.Front(job.Request, time.Now())
	}
	return r
}

// operationName is what is asked for in the words of OpenTelemetry.
func (r *run) operationName() string { return r.job.Request.Operation.Name(r.job.Request.Surface) }

// errStopped says that a job ended without an answer of ours: the client left or the process is stopping.
var errStopped = errors.New("stopped")

// answer walks the chain. nil means that the client has an answer, or as much of one as there will be.
func (r *run) answer(ctx context.Context) error {
	chain, err := r.exec.Planner.Plan(r.job.Request.Decision, r.job.Request.Stream)
	if err != nil {
		return err
	}
	r.links, r.candidates, r.queue = newLinks(chain.Links), chain.candidates, chain.Queue
	r.op, err = r.exec.read(r.job)
	if bad, ok := errors.AsType[*openai.RequestError](err); ok {
		return &fault.Fault{Kind: fault.Invalid, Message: bad.Message, Param: bad.Param, Code: bad.Code}
	}
	if err != nil {
		return err
	}
	if bad := r.fit(); bad != nil {
		if o, ok := r.op.(counting); ok {
			return o.estimate(ctx, r)
		}
		v := untranslatable(bad)
		r.record.Status = usageStatus(v)
		return r.refusal(v)
	}
	err = r.walk(ctx)
	if o, ok := r.op.(counting); ok && uncounted(err) {
		return o.estimate(ctx, r)
	}
	return err
}

// walk calls one link after the other until one answers.
func (r *run) walk(ctx context.Context) error {
	for {
		l, held, err := r.claim(ctx)
		if err != nil {
			return err
		}
		switch next, v := r.call(ctx, l, held); next {
		case finished:
			return nil
		case stopped:
			return errStopped
		case refused:
			return r.refusal(v)
		case nextLink:
			l.out = true
		case onceMore:
			if held.key != nil {
				delete(l.tried.indexes, held.key.Index)
			}
		case nextModel:
			if behind := ofChoice(v.Class); !r.changeModel(l, behind) {
				l.out = behind
			}
		case nextKey: // the one that was used is known
		}
	}
}

// fit leaves out the links that can't be asked. The error is why there is none.
func (r *run) fit() (bad *openai.RequestError) {
	links := slices.DeleteFunc(r.links, func(l link) bool {
		why := r.op.fits(&l)
		if why != nil {
			bad = why
		}
		return why != nil
	})
	switch {
	case bad == nil:
		return nil
	case len(links) == 0:
		return bad
	}
	r.links = links
	r.recount()
	return nil
}

// recount lists the slots of the links anew. Those at hand may be other runs', too.
func (r *run) recount() {
	r.candidates = make([]slot.Candidate, len(r.links))
	for i := range r.links {
		r.candidates[i] = r.links[i].candidate()
	}
}

// call makes one call and gives what follows from its verdict.
func (r *run) call(ctx context.Context, l *link, held reservation) (step, classify.Verdict) {
	a := &attempt{run: r, link: l, held: held, started: time.Now()}
	defer a.settle(classify.Verdict{Class: classify.Cancelled}) // after a panic; otherwise it is settled already
	a.logAccepted(ctx)
	a.book(ctx)
	within, end := a.span(ctx)
	v := a.exchange(within)
	v.Reason = r.exec.Secrets.Replace(v.Reason) // it may hold a code of the upstream's, which may be the key that it was sent
	end(v)
	a.settle(v)
	a.note(ctx, v)
	r.last, r.sent = v, a.sent
	if v.Class == classify.Untranslatable { // no call was made
		l.calls = 0
	}
	if a.sent == nothing && a.lighten(v) {
		return onceMore, v
	}
	next, lesson := after(situation{
		answered: a.sent != nothing, success: a.status/100 == 2, pinned: r.pinned(), provider: r.job.Request.Decision.PinProvider, history: r.history,
		link: linkFacts{
			last: len(r.links) == 1, callable: l.calls < r.exec.Limits.MaxRetries, pooled: l.Channel.Pool != nil, spare: l.usable(), large: l.Large,
		},
	}, v)
	switch {
	case lesson && v.Class == classify.Model:
		r.exec.Planner.Absent(l.Channel.Provider, l.Model)
	case lesson:
		r.exec.Planner.Lacks(l.Channel.Provider, l.Model, r.job.Request.Decision.Needs)
	}
	if next > refused {
		l.last = &failure{v, a.status, l.Large}
		r.history = append(r.history, *l.last)
	}
	return next, v
}

// pinned says whether the client named the model, or the configuration has it.
func (r *run) pinned() bool {
	d := r.job.Request.Decision
	return d.Configured || d.PinModel
}

// reserve takes the first link of the chain, in order, that is not out of the question and has a free slot. Breaker and key
// are asked for once the slot is there, so that a probe is never taken by a request that can't make it.
func (r *run) reserve(ctx context.Context) (*link, reservation, bool) {
	for {
		lease, i, err := r.exec.Slots.Acquire(ctx, r.candidates, func(i int) bool { return r.passOver(&r.links[i]) })
		if err != nil {
			if !errors.Is(err, slot.ErrBusy) && ctx.Err() == nil {
				r.exec.Log.WarnContext(ctx, "acquiring a slot", slog.Any("error", err))
			}
			r.noteFull(r.links)
			return nil, reservation{}, false
		}
		r.noteFull(r.links[:i])
		l := &r.links[i]
		if held, ok := r.authorize(l); ok {
			held.slot = lease
			l.calls++
			return l, held, true
		}
		lease.Release() // another request took the probe or the last key meanwhile
		l.out = true
	}
}

// authorize takes the permit and the key.
func (r *run) authorize(l *link) (held reservation, ok bool) {
	c := l.Channel
	if l.LastResort {
		held.permit = unguarded{}
	} else if held.permit, ok = r.exec.Breakers.Acquire(c.Circuit); !ok {
		r.exec.Metrics.skipped(c, skipOpen)
		return reservation{}, false
	}
	if c.Pool == nil {
		return held, true
	}
	if held.key, ok = c.Pool.Pick(l.Model, l.want(), l.tried.has); !ok {
		held.permit.Release()
		r.exec.Metrics.skipped(c, skipKeys)
		return reservation{}, false
	}
	l.tried.add(held.key.Index)
	return held, true
}

// passOver says whether a link is out of the question: tried already, beyond the hop budget, open, or without a usable key.
func (r *run) passOver(l *link) bool {
	switch {
	case !r.eligible(l):
		return true
	case !l.LastResort && !r.exec.Breakers.Ready(l.Channel.Circuit):
		r.exec.Metrics.skipped(l.Channel, skipOpen)
	case !l.usable():
		r.exec.Metrics.skipped(l.Channel, skipKeys)
	default:
		return false
	}
	l.out = true
	return true
}

// eligible says whether the link may be called as far as this request goes.
func (r *run) eligible(l *link) bool {
	return !l.out && r.inReach(l) && (l.Large || !r.history.tooLarge())
}

// alternative says whether another link could be called instead of this one.
func (r *run) alternative(to *link) bool {
	for i := range r.links {
		l := &r.links[i]
		if l != to && r.eligible(l) && l.usable() && (l.LastResort || r.exec.Breakers.Ready(l.Channel.Circuit)) {
			return true
		}
	}
	return false
}

// inReach says whether the hop budget allows a link. The last resort is always in reach, but not of a request whose workers keep dying.
func (r *run) inReach(l *link) bool {
	spent := len(r.job.Lost)
	if !l.LastResort {
		for i := range r.links {
			if r.links[i].calls > 0 {
				spent++
			}
		}
	}
	return l.calls > 0 || spent < r.exec.Limits.MaxHops
}

// noteFull remembers that links were passed over only because their channels are full (C-27).
func (r *run) noteFull(links []link) {
	for i := range links {
		if l := &links[i]; r.eligible(l) {
			l.full = true
			if !r.waiting {
				r.exec.Metrics.skipped(l.Channel, skipBusy)
			}
		}
	}
}

// changeModel lets a link go on with another model of its channel, at its place or behind the links of other providers. It is false when the
// planner knows none.
func (r *run) changeModel(l *link, behind bool) bool {
	planned, err := r.exec.Planner.Plan(r.job.Request.Decision, r.job.Request.Stream)
	if err != nil {
		return false
	}
	other := slices.IndexFunc(planned.Links, func(o Link) bool { return o.Channel == l.Channel && o.Model != l.Model })
	if other < 0 {
		return false
	}
	if l.Link = planned.Links[other]; l.tried != nil {
		l.tried.indexes = nil
	}
	if behind {
		r.moveBack(l)
	}
	r.recount()
	return true
}

// moveBack puts a link at the end of the chain, but before the last resort.
func (r *run) moveBack(l *link) {
	moved := *l
	rest := slices.DeleteFunc(slices.Clone(r.links), func(o link) bool { return o.Channel == moved.Channel })
	to := slices.IndexFunc(rest, func(o link) bool { return o.LastResort })
	if to < 0 || moved.LastResort {
		to = len(rest)
	}
	r.links = slices.Insert(rest, to, moved)
}

// refusal is the error of a request that is at fault itself: status and message are the upstream's.
func (r *run) refusal(v classify.Verdict) error {
	clean := r.exec.Secrets.Replace
	return &fault.Fault{
		Kind: fault.Refused, HTTPStatus: v.Status, Message: clean(v.Message), ErrorType: clean(v.Type), Code: clean(v.Code), Param: clean(v.Param),
		Details: r.details, TooLong: v.Class == classify.Size && v.Status == http.StatusBadRequest,
	}
}

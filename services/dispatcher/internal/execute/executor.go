package execute

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
)

// Limits are the resilience settings that apply to every request.
type Limits struct {
	MaxHops         int           // channels that a request may call
	MaxRetries      int           // calls through one channel with a pool of keys, each with another key
	GateTimeout     time.Duration
	IdleTimeout     time.Duration // between two upstream bytes after the commit; 0 = none
	RequestDeadline time.Duration // whole client request; 0 = none
}

// Breakers say which channels may be called. They are known by the circuit of the channel.
type Breakers interface {
	// Ready reads whether Acquire would succeed now; it takes nothing.
	Ready(circuit string) bool
	Acquire(circuit string) (Permit, bool)
	// OpenFor is how long the circuit stays open from now, 0 when it is not open.
	OpenFor(circuit string) time.Duration
}

// Permit is the leave to make one call. It ends in exactly one of the three; later calls do nothing.
type Permit interface {
	Success()
	Failure(wait time.Duration) // wait is what the channel stated, 0 for nothing
	Release()                   // the call says nothing about the channel
}

// Dialogues gives the id of the dialogue that the messages of a final body belong to. ok is false when there is none to give.
type Dialogues interface {
	ID(ctx context.Context, messages []byte) (id string, ok bool)
}

// Planner finds what may serve a request.
type Planner interface {
	// Plan gives the channels for a decision, at least one; stream says that the answer will be an event stream. The error is a *fault.Fault.
	Plan(d *contract.Decision, stream bool) (*Chain, error)
	// Absent notes that a provider turned out not to have a model that nobody asked for by name (C-43).
	Absent(provider, model string)
}

// Secrets removes known keys from text that leaves the gateway.
type Secrets interface{ Replace(text string) string }

// Executor runs requests. It is safe for concurrent use.
type Executor struct {
	Planner   Planner
	Breakers  Breakers
	Slots     slot.Acquirer
	Dialogues Dialogues
	Limits    Limits
	Secrets   Secrets
	Log       *slog.Logger
	Metrics   *Metrics
}

// Job is one request to run.
type Job struct {
	Request *contract.Request
	Body    []byte // the client's JSON
	Lost    int    // attempts of workers that died; they count against the hop budget
}

// Outcome tells what became of a job.
type Outcome struct {
	Usage    contract.RequestRecord
	HandBack bool // the process is stopping and nothing is committed: another worker should run the job
}

// run is the state of one job.
type run struct {
	*Executor
	job       Job
	req       question
	sink      Sink
	chain     *Chain
	usage     contract.RequestRecord
	tried     map[*Channel]bool // out of the question for the rest of the request
	begun     map[*Channel]int  // calls made through each channel
	keys      map[*keypool.Pool]map[int]bool
	busy      bool                 // a channel was passed over for lack of a slot
	badOutput bool                 // the one retry of a model with bad output is used up
	cut       bool                 // the answer has begun and can't be sent to its end, not even to an error
	limited   bool                 // a channel was at its limit
	tooLarge  bool                 // a channel found the request too large: only those for large requests are left (C-26)
	largeBad  bool                 // one of those failed for another reason
	last      classify.Verdict     // of the attempt before
	failed    map[*Channel]failure // the last of each channel
	classes   []classify.Class     // of all failures
	started   time.Time
}

// Run answers the job through sink. Cancelling ctx with classify.ErrClientGone stops it without an answer; any other cause means that the
// process is stopping.
func (e *Executor) Run(ctx context.Context, job Job, sink Sink) Outcome {
	r := &run{
		Executor: e, job: job, sink: sink, tried: map[*Channel]bool{}, begun: map[*Channel]int{}, keys: map[*keypool.Pool]map[int]bool{},
		failed: map[*Channel]failure{}, started: time.Now(),
	}
	r.usage = contract.RequestRecord{
		RequestID: job.Request.ID, SessionID: job.Request.SessionID, Endpoint: job.Request.Endpoint(), Model: job.Request.Model,
		Stream: job.Request.Stream, RoutingReason: job.Request.Decision.Reason,
	}
	for range job.Lost {
		r.usage.Attempts = append(r.usage.Attempts, contract.Attempt{Outcome: attemptLost, Reason: "worker died"})
	}
	if e.Limits.RequestDeadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, job.Request.ReceivedAt.Add(e.Limits.RequestDeadline), classify.ErrTotalTimeout)
		defer cancel()
	}
	return r.finish(ctx, r.answer(ctx))
}

// errStopped says that a job ended without an answer of ours: the client left or the process is stopping.
var errStopped = errors.New("stopped")

// answer walks the chain. nil means that the client has an answer, or as much of one as there will be.
func (r *run) answer(ctx context.Context) error {
	var err error
	if r.chain, err = r.Planner.Plan(r.job.Request.Decision, r.job.Request.Stream); err != nil {
		return err
	}
	if r.req, err = scan(r.job); err != nil {
		return &fault.Fault{Kind: fault.Invalid, Message: "The request body is not valid JSON", Cause: err}
	}
	for {
		c, ok := r.reserve(ctx)
		if !ok {
			break
		}
		next, err := r.call(ctx, c)
		if err != nil || next == classify.Done {
			return err
		}
	}
	return r.exhausted(ctx)
}

// reservation is a channel with the slot, the permit and, from a pool, the key to call it.
type reservation struct {
	Link
	lease  *slot.Lease
	permit Permit
	key    *keypool.Lease // nil without a pool
}

// reserve takes the first channel of the chain, in order, that is not out of the question and has a free slot. Breaker and key
// are asked for once the slot is there, so that a probe is never taken by a request that can't make it.
func (r *run) reserve(ctx context.Context) (reservation, bool) {
	for {
		links := r.chain.Links
		lease, i, err := r.Slots.Acquire(ctx, r.chain.candidates, func(i int) bool { return r.passOver(&links[i]) })
		if err != nil {
			if !errors.Is(err, slot.ErrBusy) && ctx.Err() == nil {
				r.Log.WarnContext(ctx, "acquiring a slot", slog.Any("error", err))
			}
			r.noteBusy(links)
			return reservation{}, false
		}
		r.noteBusy(links[:i])
		c := reservation{Link: links[i], lease: lease}
		if r.authorize(&c) {
			r.begun[c.Channel]++
			return c, true
		}
		lease.Release() // another request took the probe or the last key meanwhile
		r.tried[c.Channel] = true
	}
}

// authorize adds the permit and the key.
func (r *run) authorize(c *reservation) bool {
	var ok bool
	if c.LastResort {
		c.permit = unguarded{}
	} else if c.permit, ok = r.Breakers.Acquire(c.Channel.Circuit); !ok {
		r.Metrics.skipped(c.Channel, skipOpen)
		return false
	}
	if c.Channel.Pool == nil {
		return true
	}
	if c.key, ok = c.Channel.Pool.Pick(c.Model, c.want(), r.usedKey(c.Channel.Pool)); !ok {
		c.permit.Release()
		r.Metrics.skipped(c.Channel, skipKeys)
		return false
	}
	if r.keys[c.Channel.Pool] == nil {
		r.keys[c.Channel.Pool] = map[int]bool{}
	}
	r.keys[c.Channel.Pool][c.key.Index] = true
	return true
}

// unguarded is the permit of a channel without a breaker.
type unguarded struct{}

func (unguarded) Success()              {}
func (unguarded) Failure(time.Duration) {}
func (unguarded) Release()              {}

func (r *run) usedKey(p *keypool.Pool) func(int) bool {
	return func(index int) bool { return r.keys[p][index] }
}

// passOver says whether a channel is out of the question: tried already, beyond the hop budget, open, or without a usable key
//
func (r *run) passOver(l *Link) bool {
	c := l.Channel
	switch {
	case r.tried[c], r.outOfReach(l), r.tooLarge && !l.Large:
		return true
	case !l.LastResort && !r.Breakers.Ready(c.Circuit):
		r.Metrics.skipped(c, skipOpen)
	case c.Pool != nil && !c.Pool.Usable(l.Model, l.want(), r.usedKey(c.Pool)):
		r.Metrics.skipped(c, skipKeys)
	default:
		return false
	}
	r.tried[c] = true
	return true
}

// outOfReach says whether the hop budget does not allow a channel any more. The last resort is always in reach, but not of a request whose
// workers keep dying.
func (r *run) outOfReach(l *Link) bool {
	spent := r.job.Lost
	if !l.LastResort {
		spent += len(r.begun)
	}
	return r.begun[l.Channel] == 0 && spent >= r.Limits.MaxHops
}

// noteBusy remembers that channels were passed over only because they are full (C-27).
func (r *run) noteBusy(links []Link) {
	for i := range links {
		if c := links[i].Channel; !r.tried[c] && !r.outOfReach(&links[i]) && (!r.tooLarge || links[i].Large) {
			r.busy = true
			r.Metrics.skipped(c, skipBusy)
		}
	}
}

// again says whether the channel may be called once more: with another key, or, where there is no other channel, as it was
// after bad output, which says nothing of the key.
func (r *run) again(c reservation, step classify.Step) bool {
	if r.begun[c.Channel] >= r.Limits.MaxRetries {
		return false
	}
	if step == classify.RetryOnce && len(r.chain.Links) == 1 {
		if c.key != nil {
			delete(r.keys[c.Channel.Pool], c.key.Index)
		}
		return true
	}
	return c.Channel.Pool != nil && (step == classify.Retry || step == classify.RetryOnce)
}

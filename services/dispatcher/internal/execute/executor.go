package execute

import (
	"context"
	"log/slog"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/queue"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/contract"
)

// Limits are the resilience settings that apply to every request.
type Limits struct {
	MaxHops         int           // channels that a request may call
	MaxRetries      int           // calls through one channel with a pool of keys, each with another key
	GateTimeout     time.Duration
	RoutedHeaders   time.Duration // until the response headers of a routed stream that somebody else could answer; 0 = as long as of any other
	IdleTimeout     time.Duration // longest silence of an upstream after the first content of its stream; 0 = none
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
	// Lacks notes that such a model refused a request for what it needs, such as tools.
	Lacks(provider, model string, needs contract.Features)
	// Refuses notes that a provider refuses what the gateway adds to streams by itself.
	Refuses(provider string)
}

// Ledger keeps what upstreams are asked for.
type Ledger interface {
	// Begin takes in the fact of a request that is not over, and whose last call is about to be made. The first call of a delivery is not waited
	// for; a further one is told when its fact is safe, or soon.
	Begin(ctx context.Context, r contract.RequestRecord)
}

// Secrets removes known keys from text that leaves the gateway.
type Secrets interface{ Replace(text string) string }

// Executor runs requests. It is safe for concurrent use.
type Executor struct {
	Surfaces  map[contract.Surface]surface.Surface
	Planner   Planner
	Breakers  Breakers
	Slots     slot.Acquirer
	Queues    *queue.Set // nil = nobody waits
	Dialogues Dialogues
	Turns     Turns
	Responses Responses
	Ledger    Ledger
	// Front gives the message that the prompt of a request begins with at a time; nil = none.
	Front   func(r *contract.Request, at time.Time) []byte
	Limits  Limits
	Secrets Secrets
	Log     *slog.Logger
	Metrics *Metrics
	Health  *Health
	Comm    CommLog // nil = nothing is kept
}

// Job is one request to run.
type Job struct {
	Request  *contract.Request
	Body     []byte   // the client's JSON
	Delivery uint64   // of the request
	Lost     []uint64 // the earlier deliveries, whose workers are gone; they count against the hop budget
	Waits    func()   // called when the request begins to wait for a slot; may be nil
}

// Outcome tells what became of a job.
type Outcome struct {
	Usage    contract.RequestRecord
	HandBack bool // the process is stopping and nothing is committed: another worker should run the job
}

// Run answers the job through sink. Cancelling ctx with classify.ErrClientGone stops it without an answer; any other cause means that the
// process is stopping.
func (e *Executor) Run(ctx context.Context, job Job, sink Sink) Outcome {
	r := newRun(ctx, e, job, sink)
	if end := e.deadline(job.Request); !end.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, end, classify.ErrTotalTimeout)
		defer cancel()
	}
	return r.finish(ctx, r.answer(ctx))
}

// deadline is when a request must have its answer; zero = never. One that nobody waits for on a connection has its lifetime.
func (e *Executor) deadline(r *contract.Request) time.Time {
	switch {
	case r.Background:
		return r.StartBy
	case e.Limits.RequestDeadline > 0:
		return r.ReceivedAt.Add(e.Limits.RequestDeadline)
	}
	return time.Time{}
}

package execute

import (
	"context"
	"slices"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/contract"
)

// endGrace is how long the end of a call may be on its way to the ledger after the time for the call is over: the last bytes may wait for the client,
// and the fact for NATS.
const endGrace = 30 * time.Second

// book tells the ledger of the call before it is made, so that it is known of whatever happens to this process.
func (a *attempt) book(ctx context.Context) {
	r, c := a.run, a.link.Channel
	r.calls++
	a.entry = contract.Attempt{
		Delivery: r.job.Delivery, Ordinal: r.calls, Upstream: c.ID, Provider: c.Provider, Model: a.link.Model, Outcome: contract.CallBegun,
		At: a.started.UTC(), Until: a.started.Add(c.RequestTimeout + endGrace).UTC(),
	}
	if a.held.key != nil {
		a.entry.KeyIndex = a.held.key.Index
	}
	fact := r.record
	fact.Status = ""
	fact.Attempts, fact.At = append(slices.Clip(fact.Attempts), a.entry), a.entry.At
	r.exec.Ledger.Begin(ctx, fact)
	a.tellSent()
}

// countUsage takes in the tokens that the upstream told. Its last word counts (STR-15).
func (a *attempt) countUsage(u stream.Usage) { a.usage = u }

// note adds the end of the call to the record.
func (a *attempt) note(ctx context.Context, v classify.Verdict) {
	e, u := &a.entry, a.usage
	e.Outcome, e.Reason, e.Status, e.DurationMS, e.Until = outcomeOf(v), v.Reason, a.status, time.Since(a.started).Milliseconds(), time.Time{}
	e.Prompt, e.Completion, e.Total, e.Cached = u.Prompt, u.Completion, u.Total, u.Cached
	e.CostNanos = a.link.Price.Nanos(u.Prompt, u.Cached, u.Completion)
	record := &a.run.record
	record.Attempts = append(record.Attempts, *e)
	record.Provider, record.Upstream, record.UpstreamModel, record.KeyIndex, record.RoutingReason = e.Provider, e.Upstream, e.Model, e.KeyIndex, a.reason()
	record.Prompt, record.Completion, record.Total = u.Prompt, u.Completion, u.Total
	record.Status = usageStatus(v)
	a.run.exec.Metrics.attempt(a, v, time.Since(a.started))
	a.run.exec.Health.called(&a.link.Link, v, a.status)
	a.tellCame(v)
	a.logEnd(ctx, v)
}

func outcomeOf(v classify.Verdict) contract.Outcome {
	switch {
	case v.Class == classify.Success:
		return contract.CallSuccess
	case v.Class == classify.Untranslatable:
		return contract.CallNone
	case v.Failed():
		return contract.CallFailed
	}
	return contract.CallCancelled
}

func usageStatus(v classify.Verdict) string {
	if v.Failed() {
		return "error: " + v.Class.Category()
	}
	if v.Class == classify.Success {
		return statusSuccess
	}
	return statusCancelled
}

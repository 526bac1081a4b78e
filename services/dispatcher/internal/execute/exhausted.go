package execute

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/fault"
)

// ofKey says whether the failure is about the key that was used, and not about the channel.
func (f failure) ofKey() bool { return refusesKey(f.Class) || isLimit(f.Class) }

func refusesKey(c classify.Class) bool { return c == classify.Auth || c == classify.Forbidden }

func isLimit(c classify.Class) bool {
	return c == classify.Rate || c == classify.Quota || c == classify.Payment
}

// obstacle is why a channel does not answer, in words that hold nothing of the network behind the gateway.
type obstacle struct {
	text  string        // continues a sentence that begins with the name of the provider
	kind  fault.Kind    // what the request ends with if all obstacles are of this kind; "" for one that does not matter beside others
	known bool          // wait is known
	wait  time.Duration // until there may be an answer
}

// exhausted is the error of a request that no channel could answer (R-141, R-142, C-27).
func (r *run) exhausted(ctx context.Context) error {
	switch r.ending() {
	case atFault:
		return r.refusal(r.last)
	case allBusy:
		return r.busy(ctx, "", time.Second)
	case unanswered:
	}
	return r.unanswered(time.Now())
}

func (r *run) ending() ending {
	x := exhaustion{history: r.history, all: true, pinned: r.pinned()}
	for i := range r.links {
		x.all = x.all && r.links[i].last != nil
		x.full = x.full || r.links[i].full
	}
	return x.ending()
}

// busy is the error of a request that gets no slot; why continues its message.
func (r *run) busy(ctx context.Context, why string, retryAfter time.Duration) error {
	r.logRejected(ctx)
	return &fault.Fault{Kind: fault.Busy, Message: "all upstreams busy" + why, RetryAfter: retryAfter}
}

// maxTold bounds how many obstacles a message tells.
const maxTold = 8

// unanswered says what is in the way of each channel, and when that may be over. Keys that are refused, and do not come back within a minute, are
// nothing that the client should wait for, or could mend.
func (r *run) unanswered(now time.Time) error {
	var told []string
	kinds := map[fault.Kind]bool{}
	var wait time.Duration
	unknown := false
	for i := range r.links {
		l := &r.links[i]
		o, found := r.obstacle(l, now)
		if !found {
			continue
		}
		told = append(told, r.nameOf(l)+o.text)
		if o.kind != "" {
			kinds[o.kind] = true
		}
		if o.known {
			wait = soonest(wait, max(o.wait, 1))
		} else {
			unknown = true
		}
	}
	f := &fault.Fault{Kind: fault.Failed, Message: "all upstreams failed"}
	if len(kinds) == 1 {
		f.Kind = slices.Collect(maps.Keys(kinds))[0]
	}
	if len(told) > maxTold {
		told = append(told[:maxTold], "and others")
	}
	if len(told) > 0 {
		f.Message += ": " + strings.Join(told, "; ")
	}
	// One that may answer in a moment is no reason to wait for long.
	if f.Kind == fault.Failed && wait > 0 && (!unknown || wait <= fault.MaxRetryAfter) {
		f.RetryAfter = wait
		f.Message += ". Try again in " + spoken(wait) + " (" + moment(now.Add(wait)) + ")"
	}
	return f
}

// soonest is the shorter of two waits, of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// nameOf names a channel by its provider, and by itself where the provider has several in the chain.
func (r *run) nameOf(l *link) string {
	same := 0
	for i := range r.links {
		if r.links[i].Channel.Provider == l.Channel.Provider {
			same++
		}
	}
	if same > 1 {
		return l.Channel.Provider + " (" + l.Channel.ID + ")"
	}
	return l.Channel.Provider
}

// obstacle finds what is in the way of a channel; found is false for one that was not even looked at.
func (r *run) obstacle(l *link, now time.Time) (o obstacle, found bool) {
	c := l.Channel
	called := l.last != nil
	var failed failure
	if called {
		failed = *l.last
	}
	keys, resting := keysRest(l, failed)
	open := r.exec.openFor(l)
	switch {
	case resting && (!called || failed.ofKey()):
		return keys, true
	case called:
		o = obstacle{text: words(failed), kind: fault.Failed, wait: max(failed.Wait, open, keys.wait)}
		if failed.ofKey() && c.Pool != nil && c.Pool.Usable(l.Model, l.want(), nil) { // what one key is refused says nothing of those left
			o.text, o.wait = o.text+", other keys are left", max(open, time.Second)
		}
		o.known = o.wait > 0
		if refusesKey(failed.Class) && (!o.known || o.wait > fault.MaxRetryAfter) {
			o.kind = fault.UpstreamAuth
		}
		return o, true
	}
	if o, found = r.exec.barrier(l, open, now); found {
		return o, true
	}
	if r.history.tooLarge() && !l.Large || !r.inReach(l) {
		return obstacle{}, false
	}
	return obstacle{text: ": busy", kind: fault.Failed}, true
}

// openFor is how long the circuit of a link stays open; 0 when it is not, or counts for nothing.
func (e *Executor) openFor(l *link) time.Duration {
	if l.LastResort {
		return 0
	}
	return e.Breakers.OpenFor(l.Channel.Circuit)
}

// barrier is why a link is not called, whatever the request; open is what openFor says.
func (e *Executor) barrier(l *link, open time.Duration, now time.Time) (o obstacle, found bool) {
	c := l.Channel
	switch {
	case open > 0:
		return obstacle{": circuit open until " + moment(now.Add(open)), fault.Failed, true, open}, true
	case !l.LastResort && !e.Breakers.Ready(c.Circuit):
		return obstacle{text: ": another request shows whether it works again", kind: fault.Failed}, true
	case c.Pool != nil && c.Pool.Len() == 0:
		return obstacle{text: " has no key"}, true
	case c.Pool != nil && !c.Pool.Suits(l.want()):
		return obstacle{text: " has no key for the premium model " + quoted(l.Model), kind: fault.PremiumKey}, true
	}
	return obstacle{}, false
}

// keysRest is the obstacle of a channel all of whose keys cool down. last is what came of calling it, if it was called.
func keysRest(l *link, last failure) (o obstacle, resting bool) {
	pool := l.Channel.Pool
	if pool == nil {
		return o, false
	}
	classes, all := pool.Resting(l.Model, l.want())
	if !all {
		return o, false
	}
	o = obstacle{kind: fault.Failed, known: true, wait: pool.Wait(l.Model, l.want())}
	total, refused := 0, 0
	for class, n := range classes {
		total += n
		if refusesKey(class) {
			refused += n
		}
	}
	if refused < total {
		o.text = ": " + keysIn(classes, total) + ", " + spoken(o.wait)
		return o, true
	}
	o.text = " refused " + gatewaysKeys(total)
	if refusesKey(last.Class) {
		o.text += statusOf(last)
	}
	if o.wait > fault.MaxRetryAfter {
		o.kind, o.known = fault.UpstreamAuth, false
	}
	return o, true
}

package execute

import (
	"slices"

	"hydrallm/services/dispatcher/internal/classify"
)

// step is what a run does after a call.
type step uint8

// Steps.
const (
	finished  step = iota // the client has its answer
	stopped               // nobody waits for one
	refused               // the client gets what the upstream says of its request
	nextLink              // the link is out of the question
	nextKey               // the link may be called again with another key
	onceMore              // the link may be called again as it was: what failed says nothing of the key
	nextModel             // the link goes on with another model of its channel, if there is one
)

// situation is what the step after a call depends on, beside the verdict.
type situation struct {
	answered bool // the client has at least the status line
	success  bool // the upstream answered 2xx

	// Who chose. What the client asked for by name is not replaced; what the gateway chose is (R-100, C-09, C-43).
	pinned   bool // the client named the model, or it is one of the configuration
	provider bool // the client named the provider

	link    linkFacts
	history history
}

// linkFacts are what is known of the link that was called.
type linkFacts struct {
	last     bool // there is no other
	callable bool // it may be called once more, as far as the number of calls goes
	pooled   bool // it has a pool of keys
	spare    bool // a key of the pool that was not tried may be used for the model
	large    bool // it serves requests that are too large for others (C-26)
}

// after gives the step that follows from a verdict. lesson says that it tells something of a model that the gateway chose: that it is missing, or
// can't do what the request needs.
func after(s situation, v classify.Verdict) (next step, lesson bool) {
	switch {
	case s.answered:
		return finished, false
	case v.Class == classify.Cancelled:
		return stopped, false
	}
	lesson = ofChoice(v.Class) && !s.pinned
	switch s.consequence(v) {
	case classify.Final:
		return refused, lesson
	case classify.RetryOnce:
		next = s.retryOnce()
	case classify.Retry:
		next = s.retry(v)
	case classify.NextChannel, classify.Done, classify.Stop:
		next = nextLink
		if lesson && s.link.callable {
			next = nextModel
		}
	}
	return next, lesson
}

// ofChoice says whether another choice of the model would have been better.
func ofChoice(c classify.Class) bool { return c == classify.Model || c == classify.Incapable }

// consequence is what the class of a failure means for this request.
func (s situation) consequence(v classify.Verdict) classify.Step {
	switch {
	case s.pinned, s.provider && !ofChoice(v.Class):
		return v.Next(true)
	case v.Class == classify.Size && (s.link.large || s.history.tooLarge()):
		return classify.Final
	}
	return v.Next(false)
}

// retryOnce is the step after a model failed at its own output. The second time the client gets what the upstream says of it, unless that was a
// 2xx, in which there is nothing for it.
func (s situation) retryOnce() step {
	switch again := s.history.has(classify.BadOutput); {
	case again && s.success:
		return nextLink
	case again:
		return refused
	case s.link.callable && s.link.last:
		return onceMore
	case s.link.callable && s.link.pooled:
		return nextKey
	}
	return nextLink
}

// retry is the step after a failure that another key or another link may not have. Where no key of the channel may use this model any more,
// another model is tried if the gateway chose this one. A provider that is down gets no further calls this way.
func (s situation) retry(v classify.Verdict) step {
	ofModel := v.PerModel && (v.Class == classify.Rate || v.Class == classify.Quota || v.Class == classify.Forbidden)
	switch {
	case !s.link.callable, !s.link.pooled, v.Unreached, v.Hung:
		return nextLink
	case ofModel && !s.pinned && !s.link.spare:
		return nextModel
	}
	return nextKey
}

// failure is a call that brought no answer.
type failure struct {
	classify.Verdict

	status int  // HTTP status of the upstream, 0 without one
	large  bool // of a link for large requests
}

// history is what failed before, in order.
type history []failure

func (h history) has(classes ...classify.Class) bool {
	return slices.ContainsFunc(h, func(f failure) bool { return slices.Contains(classes, f.Class) })
}

// only says that there was no other class of failures.
func (h history) only(class classify.Class) bool {
	return !slices.ContainsFunc(h, func(f failure) bool { return f.Class != class })
}

// tooLarge says that a channel found the request too large: only links for large requests are left (C-26).
func (h history) tooLarge() bool { return h.has(classify.Size) }

// limited says that a channel was at its limit.
func (h history) limited() bool { return h.has(classify.Rate, classify.Quota) }

// ending is what a request ends with that no link could answer.
type ending uint8

// Endings.
const (
	unanswered ending = iota
	allBusy           // nothing was wrong with any channel: they were full (C-27)
	atFault           // the request is at fault itself, and no waiting changes that: the last verdict says why
)

// exhaustion is what the ending of a request depends on that no link could answer.
type exhaustion struct {
	history history
	all     bool // every link failed
	full    bool // a link was passed over for lack of a slot
	pinned  bool // the client named the model, or it is one of the configuration
}

// ending gives the ending.
func (x exhaustion) ending() ending {
	largeFailed := func(f failure) bool { return f.large && f.Class != classify.Size && f.Class != classify.Untranslatable }
	switch n := len(x.history); {
	case n == 0 && x.full:
		return allBusy
	case n == 0:
		return unanswered
	case x.history[n-1].Class == classify.Size && !slices.ContainsFunc(x.history, largeFailed):
		return atFault
	case x.all && (x.history.only(classify.Untranslatable) || x.history.only(classify.Incapable) || x.pinned && x.history.only(classify.Model)):
		return atFault
	}
	return unanswered
}

package classify

import (
	"net/http"
	"time"
)

// Class is what a result means for the request. Its text is safe to log and to show.
type Class string

// Classes.
const (
	Success        Class = "success"
	Upstream       Class = "upstream"       // fault of the provider: overload, crash, network, an answer that is none
	Rate           Class = "rate_limit"     // the key ran into a short window
	Quota          Class = "quota"          // the key ran into a long window, or its budget is spent
	Payment        Class = "payment"        // 402: the account has no balance
	Auth           Class = "auth"           // the key is wrong, revoked or expired
	Forbidden      Class = "forbidden"      // the key is valid but not for this model, region or project
	Model          Class = "model"          // the upstream does not have the model
	Client         Class = "client"         // the client's request is wrong
	Size           Class = "size"           // the client's request is too large for this upstream
	Untranslatable Class = "untranslatable" // the client's request can't be put to this upstream; another may take it
	Incapable      Class = "incapable"      // the model can't do what the request needs, such as tools or images; another may
	BadOutput      Class = "bad_output"     // the model failed at its own output; the same request may work next time
	Cancelled      Class = "cancelled"      // the client left; nobody's failure
)

// Classes are all of them.
var Classes = []Class{Success, Upstream, Rate, Quota, Payment, Auth, Forbidden, Model, Client, Size, Untranslatable, Incapable, BadOutput, Cancelled}

// Category is the name that logs and key metadata use; "" for what is no error of anyone.
func (c Class) Category() string {
	switch c {
	case Rate, Quota, Payment:
		return "RESOURCE_EXHAUSTED"
	case Client, Size, Untranslatable, Incapable:
		return "VALIDATION_ERROR"
	case Upstream, BadOutput:
		return "SERVICE_UNAVAILABLE"
	case Model:
		return "MODEL_NOT_FOUND"
	case Auth, Forbidden:
		return "AUTH_FAILURE"
	case Success, Cancelled:
		return ""
	}
	return "INTERNAL_ERROR"
}

// Cooldown names the rest that a key gets.
type Cooldown uint8

// Cooldowns. The durations are configuration; a stated wait replaces them.
const (
	NoCooldown        Cooldown = iota
	QuotaCooldown              // an hour by default
	ForbiddenCooldown          // a day by default
	OtherCooldown              // five minutes by default
)

// String gives the name of the configuration key.
func (c Cooldown) String() string {
	switch c {
	case QuotaCooldown:
		return "quota"
	case ForbiddenCooldown:
		return "forbidden"
	case OtherCooldown:
		return "other"
	case NoCooldown:
	}
	return "none"
}

// Step is what the request does next.
type Step uint8

// Steps.
const (
	Done        Step = iota // the answer is good
	Retry                   // another key of the pool, or the next channel
	RetryOnce               // like Retry, but once per request
	NextChannel             // no key of this channel helps; another channel may
	Final                   // the client gets the status and the message of the verdict
	Stop                    // nobody waits for an answer
)

// Next tells the step after a result. Named says that the client named the model or the provider, or that the model is declared in the
// configuration: what it asked for can't be replaced, so a missing model or balance is final (R-101, R-118, C-09). Otherwise another
// channel may serve the request, also one with a larger window (C-26, C-43).
func (c Class) Next(named bool) Step {
	switch c {
	case Success:
		return Done
	case Upstream, Rate, Quota, Auth, Forbidden:
		return Retry
	case BadOutput:
		return RetryOnce
	case Payment, Model, Size, Untranslatable, Incapable:
		if named {
			return Final
		}
		return NextChannel
	case Client:
		return Final
	case Cancelled:
		return Stop
	}
	return Retry
}

// Verdict is everything that follows from a result.
type Verdict struct {
	Class    Class
	Breaker  bool     // the breaker counts it as a failure
	Cooldown Cooldown // what happens to the key
	PerModel bool     // the cooldown binds the key for this model only, else for all

	// Wait is how long the upstream wants to be left alone, 0 when unknown. Stated: this answer says so, and it replaces the default of the
	// cooldown, up to the configured maximum. Otherwise it is what the provider is known to need, of use for a pause only.
	Wait   time.Duration
	Stated bool

	// Unreached says that the call did not get to the upstream, and Hung that the upstream took it and said nothing. Another key changes neither.
	Unreached, Hung bool

	// Reason is a short text for logs and facts, safe to show.
	Reason string

	// What a client sees when the step is Final. The text comes from the upstream, bounded and without markup; known keys must be scrubbed
	// from it before it leaves. Status is an HTTP status of the 4xx range.
	Status  int
	Message string
	Type    string
	Code    string // "" means null
	Param   string // "" means null
}

// Next tells the step after a result, as Class.Next does. A model that is gone from one channel may be there at another, whoever chose it
//
func (v Verdict) Next(named bool) Step {
	if v.Class == Model && v.Status == http.StatusGone {
		named = false
	}
	return v.Class.Next(named)
}

// Names says whether the upstream refuses the request and speaks of one of these members, or words, in lower case.
func (v Verdict) Names(words ...string) bool {
	return (v.Class == Client || v.Class == Incapable) && (containsAny(v.Message, words...) || containsAny(v.Param, words...))
}

// Failed says that the result is no success. A cancelled call has not failed.
func (v Verdict) Failed() bool { return v.Class != Success && v.Class != Cancelled }

// of gives the verdict of a class with its usual effects.
func of(c Class, reason string) Verdict {
	v := Verdict{Class: c, Reason: reason}
	switch c {
	case Upstream:
		v.Breaker, v.Cooldown = true, OtherCooldown
	case Rate, Quota:
		v.Breaker, v.Cooldown = true, QuotaCooldown
	case Payment:
		v.Cooldown = QuotaCooldown
	case Auth, Forbidden:
		v.Cooldown = ForbiddenCooldown
	case Success, Model, Client, Size, Untranslatable, Incapable, BadOutput, Cancelled: // nobody's fault, or the client's: it must cost no key and move no breaker
	}
	return v
}

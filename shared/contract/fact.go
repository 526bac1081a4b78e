package contract

import (
	"errors"
	"strings"
	"time"
)

// Endpoint is what a client called, as the ledger names it: for what has no name here, the route below /v1 with dots, such as "audio.speech".
type Endpoint string

// Endpoints.
const (
	EndpointChat        Endpoint = "chat.completions" // POST /v1/chat/completions
	EndpointMessages    Endpoint = "messages"         // POST /v1/messages
	EndpointResponses   Endpoint = "responses"        // POST /v1/responses
	EndpointCompletions Endpoint = "completions"      // POST /v1/completions
	EndpointEmbeddings  Endpoint = "embeddings"       // POST /v1/embeddings
)

// answers are the endpoints that ask for an answer of a model, by the protocol of the client.
var answers = map[Surface]Endpoint{
	SurfaceChat: EndpointChat, SurfaceMessages: EndpointMessages, SurfaceResponses: EndpointResponses, SurfaceCompletions: EndpointCompletions,
}

// EndpointOf names what is called for an operation over a surface. An operation of which there is one has its own name.
func EndpointOf(o Operation, s Surface) Endpoint {
	if e, ok := answers[s]; ok && o == Chat {
		return e
	}
	return Endpoint(strings.ReplaceAll(string(o), "/", "."))
}

// RequestRecord is the fact of a request: every upstream call that one delivery of it has made so far, and, once the request is over, what it cost and
// who answered. Facts of one delivery repeat the calls of the earlier ones, so that the last one is enough.
type RequestRecord struct {
	RequestID     string    `json:"request_id"`
	TraceID       string    `json:"trace_id,omitempty"` // "" = it is in no trace
	SessionID     string    `json:"session_id,omitempty"`
	Principal     string    `json:"principal,omitempty"` // who pays
	Endpoint      Endpoint  `json:"endpoint"`
	Model         string    `json:"model"`                    // the name the client sent
	Provider      string    `json:"provider,omitempty"`       // of the upstream that answered
	Upstream      string    `json:"upstream,omitempty"`       //
	UpstreamModel string    `json:"upstream_model,omitempty"` //
	KeyIndex      int       `json:"key_index"`                // never the key
	Status        string    `json:"status"`                   // "success", "cancelled" or "error: CATEGORY"; "" = the request is not over
	RoutingReason string    `json:"routing_reason,omitempty"`
	Stream        bool      `json:"stream,omitempty"`
	Prompt        int64     `json:"prompt_tokens"` // of the last call, like the other counts
	Completion    int64     `json:"completion_tokens"`
	Total         int64     `json:"total_tokens"`
	LatencyMS     int64     `json:"latency_ms"`               // from arrival at the ingress to the last byte
	FirstTokenMS  int64     `json:"first_token_ms,omitempty"` // from arrival to the commit of the answer
	Attempts      []Attempt `json:"attempts,omitempty"`
	At            time.Time `json:"at"`
}

// Over says whether the request has ended. A fact of one that has not tells only of its calls.
func (u *RequestRecord) Over() bool { return u.Status != "" }

// Attempt is one upstream call of a request. Request, delivery and ordinal name it.
type Attempt struct {
	Delivery   uint64      `json:"delivery,omitempty"` // of the request, at which it was made
	Ordinal    int         `json:"ordinal,omitempty"`  // among the calls of the delivery, from 1; 0 in facts of versions that did not count
	Upstream   string      `json:"upstream"`
	Provider   string      `json:"provider"`
	Model      string      `json:"model,omitempty"` // as the provider calls it
	KeyIndex   int         `json:"key_index,omitempty"`
	Outcome    Outcome     `json:"outcome"`
	Reason     string      `json:"reason,omitempty"` // class of the failure, safe to show
	Status     int         `json:"status,omitempty"` // HTTP status of the upstream, 0 without one
	DurationMS int64       `json:"duration_ms"`
	Prompt     int64       `json:"prompt_tokens,omitempty"` // as the provider counts, like the other tokens; 0 = not known
	Completion int64       `json:"completion_tokens,omitempty"`
	Total      int64       `json:"total_tokens,omitempty"`
	Cached     int64       `json:"cached_tokens,omitempty"` // of the prompt, that the provider had in its cache
	CostNanos  *int64      `json:"cost_nanos,omitempty"`    // billionths of the unit of the price; nil = no price or no tokens are known
	Headers    [][2]string `json:"headers,omitempty"`       // of the answer, those that help to find out what happened, without secrets
	At         time.Time   `json:"at,omitzero"`             // when it began
	Until      time.Time   `json:"until,omitzero"`          // of one that has begun: without an end by then it is lost
}

// Outcome is what became of an upstream call.
type Outcome string

// Outcomes. An end is told by whoever made the call; what nobody tells an end of is lost.
const (
	CallBegun     Outcome = "begun"
	CallLost      Outcome = "lost" // whoever made it is gone; the upstream may have answered and want to be paid
	CallSuccess   Outcome = "success"
	CallFailed    Outcome = "failed"
	CallCancelled Outcome = "cancelled"
	CallNone      Outcome = "none" // none was made after all: the request can't be put into the dialect, or was handed back
)

// Known says whether this version knows the outcome.
func (o Outcome) Known() bool {
	switch o {
	case CallBegun, CallLost, CallSuccess, CallFailed, CallCancelled, CallNone:
		return true
	}
	return false
}

// Settles says whether an outcome takes the place of another one that was told of the same call, in whatever order they come.
func (o Outcome) Settles(earlier Outcome) bool { return o.rank() > earlier.rank() }

// Ended says whether the end of the call is known.
func (o Outcome) Ended() bool { return o.rank() == rankEnded }

const (
	rankBegun = iota
	rankLost
	rankEnded
)

func (o Outcome) rank() int {
	switch o {
	case CallBegun:
		return rankBegun
	case CallLost:
		return rankLost
	case CallSuccess, CallFailed, CallCancelled, CallNone:
	}
	return rankEnded
}

// LostCalls gives what is known of the calls of deliveries whose workers are gone: that each may have made one. A fact of the worker itself, which
// knows more, wins if there is one.
func LostCalls(deliveries []uint64) []Attempt {
	var calls []Attempt
	for _, d := range deliveries {
		calls = append(calls, Attempt{Delivery: d, Ordinal: 1, Outcome: CallLost, Reason: ReasonWorkerDied})
	}
	return calls
}

// ReasonWorkerDied is the reason of calls that were lost with their worker.
const ReasonWorkerDied = "worker died"

// ErrClientGone is why work on a request ends whose client has left.
var ErrClientGone = errors.New("the client left")

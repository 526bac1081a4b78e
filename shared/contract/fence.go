package contract

// FenceQuestion is what a worker asks the ingress that owns a request before it runs a delivery that another worker may have had.
type FenceQuestion struct {
	RequestID string   `json:"request_id"`
	At        Position `json:"at"`
	Worker    string   `json:"worker"`         // who asks
	Gone      string   `json:"gone,omitempty"` // a worker that does not have the request any more, as the one who asks has found out
}

// FenceDecision is the kind of an answer to a FenceQuestion.
type FenceDecision string

// Decisions.
const (
	FenceRun  FenceDecision = "run"  // nothing is committed; earlier positions are fenced from now on
	FenceStop FenceDecision = "stop" // the answer has begun, or nobody waits for it any more
	FenceWait FenceDecision = "wait" // another worker may still have it
)

// FenceAnswer is the answer of the ingress.
type FenceAnswer struct {
	Decision FenceDecision `json:"decision"`
	Delivery uint64        `json:"delivery,omitempty"` // with FenceRun, the delivery count of the position at which to run
	Lost     []uint64      `json:"before,omitempty"`   // the earlier deliveries at which workers of the stage had the request
	Worker   string        `json:"worker,omitempty"`   // with FenceWait, who may have it; "" when that is not known
}

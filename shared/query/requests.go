package query

import "time"

// Operations that show what was served.
var (
	// ListRequests gives requests that are over, newest first, each with its upstream calls; GET /v1/admin/requests.
	ListRequests = Op[Requests, RequestPage]{SessionWriter, "requests", 10 * time.Second}
	// GetTimeline sums the requests of a time, in steps of it; GET /v1/admin/timeline.
	GetTimeline = Op[Timeline, Sums]{SessionWriter, "timeline", 20 * time.Second}
)

// Page says which part of a list is wanted. Numbers are those of the entries, which are never given twice and grow.
type Page struct {
	Limit  int   `json:"limit"`            // 1 to 1000, and 50 for 0
	Before int64 `json:"before,omitempty"` // entries with a smaller number; 0 = from the newest one
	After  int64 `json:"after,omitempty"`  // only entries with a larger number; 0 = all
}

// Requests says which requests are wanted. An empty member says nothing.
type Requests struct {
	Page

	ID       string `json:"request_id,omitempty"` // begins so
	Trace    string `json:"trace_id,omitempty"`
	Session  string `json:"session_id,omitempty"`
	Model    string `json:"model,omitempty"`    // that the client asked for, or that answered
	Provider string `json:"provider,omitempty"` // that answered
	Client   string `json:"client,omitempty"`   // the principal who asked
	Status   string `json:"status,omitempty"`   // RequestsAnswered, ...
	Reason   string `json:"reason,omitempty"`   // of the routing decision, or a class of failure
}

// What Requests.Status may be.
const (
	RequestsAnswered  = "success"
	RequestsFailed    = "failed"
	RequestsCancelled = "cancelled"
	RequestsSaved     = "failover" // answered after a call that failed
)

// RequestPage is a part of the requests, newest first.
type RequestPage struct {
	Requests []Request `json:"requests"`
	More     bool      `json:"more"` // there are older ones
}

// Request is a request that is over.
type Request struct {
	Number        int64  `db:"id" json:"number"` // in the order of the ledger
	ID            string `db:"request_id" json:"request_id"`
	Trace         string `db:"trace_id" json:"trace_id,omitempty"` // in hexadecimal digits; "" = it is in no trace
	Session       string `db:"session_id" json:"session_id,omitempty"`
	Principal     string `db:"principal" json:"principal"`
	Endpoint      string `db:"endpoint" json:"endpoint"`
	Model         string `db:"model" json:"model"` // as the client named it
	Provider      string `db:"provider" json:"provider"`
	Upstream      string `db:"upstream" json:"upstream"`
	UpstreamModel string `db:"upstream_model" json:"upstream_model"`
	KeyIndex      int64  `db:"key_index" json:"key_index"`
	Stream        bool   `db:"stream" json:"stream"`
	Status        string `db:"status" json:"status"`
	Reason        string `db:"routing_reason" json:"routing_reason"`
	Prompt        int64  `db:"prompt_tokens" json:"prompt_tokens"`
	Completion    int64  `db:"completion_tokens" json:"completion_tokens"`
	Total         int64  `db:"total_tokens" json:"total_tokens"`
	LatencyMS     int64  `db:"latency_ms" json:"latency_ms"`
	FirstTokenMS  int64  `db:"first_token_ms" json:"first_token_ms"`
	CreatedAt     Time   `db:"created_at" json:"created_at"`
	Calls         []Call `db:"-" json:"calls"` // in the order in which they were made
}

// Timeline says which requests are summed.
type Timeline struct {
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to"` // not included
	Step   time.Duration `json:"step"`
	Model  string        `json:"model,omitempty"`  // as in Requests
	Client string        `json:"client,omitempty"` // as in Requests
}

// Sums are what a Timeline asked for.
type Sums struct {
	From      Time       `json:"from"`
	To        Time       `json:"to"`
	StepMS    int64      `json:"step_ms"`
	Total     Sum        `json:"total"`
	Before    Sum        `json:"before"`    // the same time before From
	Points    []Sum      `json:"points"`    // one for each step
	Models    []NamedSum `json:"models"`    // by the model that answered, most tokens first
	Providers []NamedSum `json:"providers"` // by the provider that answered
	Clients   []NamedSum `json:"clients"`   // by principal
	Partial   bool       `json:"partial"`   // there was more than could be read: the sums are too small
}

// NamedSum is the sum of the requests that share a name.
type NamedSum struct {
	Name string `json:"name"`
	Sum
}

// Sum counts requests. The times to the first token are estimates, at most a quarter off; 0 is none.
type Sum struct {
	Requests   int64    `json:"requests"`
	Failed     int64    `json:"failed"`
	Cancelled  int64    `json:"cancelled"`
	Saved      int64    `json:"failover"` // answered after a call that failed
	Prompt     int64    `json:"prompt_tokens"`
	Completion int64    `json:"completion_tokens"`
	Cost       *float64 `json:"cost"` // of all their calls; nil = no price is known
	MedianMS   int64    `json:"first_token_ms"`
	P95MS      int64    `json:"first_token_p95_ms"`
}

package query

import (
	"time"

	"hydrallm/shared/fault"
)

// Dispatcher is the service that calls upstreams.
const Dispatcher = "dispatcher"

// Operations of the dispatcher.
var (
	// GetStatus reads what one dispatcher knows; GET /v1/admin/status.
	GetStatus = Op[None, Status]{Dispatcher, "status", 30 * time.Second}
	// AddKeys adds keys to the pool of a provider, for all dispatchers and for good; POST /v1/admin/keys.
	AddKeys = Op[NewKeys, KeysAdded]{Dispatcher, "add_keys", time.Minute}
	// RemoveKey takes a key that was added out of the pool of a provider, for all dispatchers and for good; DELETE /v1/admin/keys.
	RemoveKey = Op[KeyName, Done]{Dispatcher, "remove_key", time.Minute}
	// ProbeKeys probes the keys that failed; POST /v1/admin/probe. It answers ErrProbing while another probe runs.
	ProbeKeys = Op[Probe, Probed]{Dispatcher, "probe", time.Minute}
	// RefreshModels has all providers list their models now; POST /v1/admin/refresh-models.
	RefreshModels = Op[None, Done]{Dispatcher, "refresh_models", time.Minute}
)

// ErrProbing says that keys are being probed already.
var ErrProbing = &fault.Fault{Kind: fault.Conflict, Message: "Keys are being probed at the moment"}

// NewKeys are keys to add to the pool of a provider.
type NewKeys struct {
	Provider string   `json:"provider"`
	Keys     [][]byte `json:"keys"` // each sealed under the admin key in the context of the provider
}

// KeysAdded tells how many keys were really new.
type KeysAdded struct {
	Status string `json:"status"` // Success
	Added  int    `json:"added_count"`
}

// KeyName names a key of a provider as its status shows it: by its index, by its mask if no other key has the same, or by both.
type KeyName struct {
	Provider string `json:"provider"`
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
}

// Probe says which keys to probe.
type Probe struct {
	Force bool `json:"force"` // also those whose cooldown is not over
}

// Probed is what a probe of keys found.
type Probed struct {
	Status    string `json:"status"` // Success
	Probed    int    `json:"probed"`
	Recovered int    `json:"recovered"` // probed keys that are active again
	Failed    int    `json:"failed"`    // probed keys that are still failed
	Resting   int    `json:"resting"`   // failed keys that were not probed, because their cooldown is not over
}

// Status is what one dispatcher knows of providers, keys, chains, circuits and slots (R-116, C-39).
type Status struct {
	Status        string                    `json:"status"` // Online
	Providers     map[string]ProviderStatus `json:"providers"`
	Agents        map[string]AgentStatus    `json:"agents"`
	KeyStatistics map[string]KeyStatistics  `json:"key_statistics"` // of providers with a pool of keys
	Circuits      map[string]Circuit        `json:"circuits"`
	Channels      map[string]Channel        `json:"channels"` // by the same names
	Slots         []Load                    `json:"slots"`
	Queues        []Queue                   `json:"queues"` // of the models that have one
	Chains        map[string][]string       `json:"chains"` // upstreams of each model of the configuration
}

// Online is the status of a dispatcher that answers.
const Online = "online"

// ProviderStatus sums up a provider. It is healthy when a request for its own choice of a model would be sent to it now, no circuit of an upstream
// of it is open, and there is a connection to it; else Problem says what is in the way.
type ProviderStatus struct {
	Healthy     bool      `json:"healthy"`
	Problem     string    `json:"problem,omitempty"`
	Unreachable time.Time `json:"unreachable_since,omitzero"` // no connection since then
	Models      int       `json:"models"`                     // that it lists
	ActiveKeys  int       `json:"active_keys"`                // that have not failed for all models, or have worked since
	UsableKeys  int       `json:"usable_keys"`                // that may be used for every model now
	FailedKeys  int       `json:"failed_keys"`
	TotalKeys   int       `json:"total_keys"`
}

// Channel is what a dispatcher knows of calling an upstream, or a provider for requests that are routed.
type Channel struct {
	Provider    string     `json:"provider"`
	Usable      bool       `json:"usable"`            // a call would be made now
	Problem     string     `json:"problem,omitempty"` // why not
	LastSuccess time.Time  `json:"last_success,omitzero"`
	LastError   *CallError `json:"last_error,omitempty"`
}

// CallError is a call that brought no answer, and not through the request's own fault. It holds nothing that the provider wrote.
type CallError struct {
	At     time.Time `json:"at"`
	Class  string    `json:"error"`
	Reason string    `json:"reason,omitempty"`
	Status int       `json:"status,omitempty"` // of HTTP
	Model  string    `json:"model,omitempty"`
}

// AgentStatus is a local agent: healthy once it has listed its models and while its circuit is not open (B-41).
type AgentStatus struct {
	Healthy bool   `json:"healthy"`
	BaseURL string `json:"base_url"`
}

// Circuit is a reading of a circuit breaker.
type Circuit struct {
	State     string        `json:"state"`         // "closed", "open", "half-open"
	Failures  int           `json:"failures"`      // that count towards the next opening
	Remaining time.Duration `json:"remaining"`     // until an open breaker lets a call through, in nanoseconds
	Probing   bool          `json:"probing"`       // a probe is under way
	Remote    bool          `json:"remote_opened"` // the opening in force came from another dispatcher
}

// Queue is the requests that wait for a slot of a model, over all dispatchers.
type Queue struct {
	Model    string    `json:"model"`
	Waiting  int       `json:"waiting"`
	Length   int       `json:"length"`   // how many may wait
	Requests []Waiting `json:"requests"` // the first ones, in their order
}

// Waiting is a request that waits.
type Waiting struct {
	RequestID string    `json:"request_id"`
	Position  int       `json:"position"` // from 1
	Priority  string    `json:"priority"`
	Since     time.Time `json:"since"`
}

// Load is how many calls an upstream has.
type Load struct {
	ID     string `json:"id"`
	Active int    `json:"active"` // calls of the dispatcher that answers
	Limit  int    `json:"limit"`  // over all dispatchers; 0 means none
}

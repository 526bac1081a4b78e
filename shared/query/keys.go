package query

import "time"

// KeyStatistics is what a dispatcher knows of the keys of a provider.
type KeyStatistics struct {
	Total  int           `json:"total"`
	Active int           `json:"active"`
	Failed int           `json:"failed"`
	Keys   []KeyStatus   `json:"keys"`
	Usage  map[int]int64 `json:"usage"` // calls by the index of the key
	Quota  []KeyQuota    `json:"quota"` // calls of this process in the current minute and day
}

// States of a key.
const (
	KeyActive = "active"
	KeyFailed = "failed" // and no success since; it may be used again once its cooldown is over
)

// KeyStatus is the state of one key. It holds the key only masked, and nothing that a provider wrote.
type KeyStatus struct {
	Index      int       `json:"index"`
	ID         string    `json:"id"` // the masked key
	Tier       string    `json:"tier"`
	State      string    `json:"status"` // KeyActive or KeyFailed
	Active     bool      `json:"usable"` // may be used for some model now, whatever its state
	Calls      int64     `json:"usage"`
	Failures   int64     `json:"failures"` // calls that cost the key a cooldown
	FailedAt   time.Time `json:"failed_at,omitzero"`
	Reason     string    `json:"error,omitempty"` // class of the failure
	QuotaLimit bool      `json:"is_quota_limit"`
	Forbidden  bool      `json:"is_forbidden"`
	Until      time.Time `json:"cooldown_until,omitzero"` // of the cooldown for every model; may be past
	Remaining  int       `json:"cooldown_remaining"`      // of the same in seconds, rounded up
	Models     []string  `json:"resting_models,omitempty"`
	// Cooldowns are those for one model, of the models in Models.
	Cooldowns  []ModelCooldown `json:"model_cooldowns,omitempty"`
	LastError  *CallError      `json:"last_error,omitempty"` // the last failure that was the key's; it stays after a success
	LastProbed time.Time       `json:"last_probed,omitzero"`
}

// ModelCooldown is the time in which a key is not used for a model.
type ModelCooldown struct {
	Model     string    `json:"model"`
	Reason    string    `json:"error,omitempty"` // class of the failure
	Until     time.Time `json:"cooldown_until"`
	Remaining int       `json:"cooldown_remaining"` // seconds, rounded up
}

// KeyQuota is what was made of the quota of a key for all models together, and for each of those used last.
type KeyQuota struct {
	Index int    `json:"index"`
	ID    string `json:"id"` // the masked key
	Tier  string `json:"tier"`
	QuotaUse
	Models []ModelQuota `json:"models"`
}

// ModelQuota is what was made of the quota of a key for one model.
type ModelQuota struct {
	Model string `json:"model"`
	QuotaUse
}

// QuotaUse is what was made of a quota. It counts the calls that one process began, by minutes and days of UTC; a provider's own day may
// begin at another hour, and its own count may leave out calls that failed.
type QuotaUse struct {
	Minute   Window    `json:"minute"`
	Day      Window    `json:"day"`
	Cooldown int       `json:"cooldown_remaining"` // seconds, rounded up
	Last429  time.Time `json:"last_429,omitzero"`  // when a limit of the key was last hit, with whatever status
}

// Window counts the calls of the current minute or day.
type Window struct {
	Used  int       `json:"used"`
	Limit int       `json:"limit,omitempty"` // left out when not known
	Reset time.Time `json:"reset_at"`
}

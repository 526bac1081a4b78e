package query

import "time"

// GetClientUsage gives what clients with named keys have used since a time each, in the order of the question.
var GetClientUsage = Op[[]ClientSince, []ClientUsage]{SessionWriter, "client_usage", 10 * time.Second}

// ClientSince names a client, and since when its usage is wanted: the begin of a quarter of an hour.
type ClientSince struct {
	Principal string    `json:"principal"`
	Since     time.Time `json:"since"`
}

// ClientUsage is what a client has used: requests that are over, and the calls for them.
type ClientUsage struct {
	Tokens    int64 `db:"tokens" json:"tokens"`
	CostNanos int64 `db:"cost_nanos" json:"cost_nanos"` // billionths, of calls with a known price
	LastUsed  Time  `db:"last_used" json:"last_used"`   // zero = not for weeks
}

// ClientTotal sums the requests of one client, as ProviderUsage does those of a provider.
type ClientTotal struct {
	Principal  string   `db:"principal" json:"principal"`
	Prompt     int64    `db:"prompt" json:"prompt"`
	Completion int64    `db:"completion" json:"completion"`
	Total      int64    `db:"total" json:"total"`
	Count      int64    `db:"count" json:"count"`
	Errors     int64    `db:"errors" json:"errors"`
	Cost       *float64 `db:"cost" json:"cost"` // nil = not known
}

package query

import "time"

// SessionWriter is the service that owns the database.
const SessionWriter = "session-writer"

// Operations of the session writer.
var (
	// GetStats sums what is stored; GET /v1/admin/stats.
	GetStats = Op[None, Stats]{SessionWriter, "stats", 10 * time.Second}
	// GetCalls gives the newest upstream calls of the ledger, newest first; GET /v1/admin/calls.
	GetCalls = Op[Calls, []Call]{SessionWriter, "calls", 10 * time.Second}
	// GetLogs gives the newest events, newest first; GET /v1/admin/logs.
	GetLogs = Op[Logs, []LogEntry]{SessionWriter, "logs", 10 * time.Second}
	// PutSettings stores values of live settings, all of them or none, and has every service take them over; PUT /v1/admin/settings.
	PutSettings = Op[ChangedSettings, SettingsStored]{SessionWriter, "put_settings", 10 * time.Second}
	// ClearLogs removes all events; POST /v1/admin/logs/clear.
	ClearLogs = Op[None, Done]{SessionWriter, "clear_logs", 10 * time.Second}
)

// Calls says how many upstream calls are wanted: 1 to 1000, and 50 for 0.
type Calls struct {
	Limit int `json:"limit"`
}

// Call is an upstream call of the ledger.
type Call struct {
	RequestID     string   `db:"request_id" json:"request_id"`
	Delivery      int64    `db:"delivery" json:"delivery"` // of the request, at which it was made
	Ordinal       int64    `db:"ordinal" json:"ordinal"`   // among the calls of the delivery
	Principal     string   `db:"principal" json:"principal"`
	Endpoint      string   `db:"endpoint" json:"endpoint"`
	Model         string   `db:"model" json:"model"` // as the client named it
	Provider      string   `db:"provider" json:"provider"`
	Upstream      string   `db:"upstream" json:"upstream"` // "" = nobody knows: its worker died before it told
	UpstreamModel string   `db:"upstream_model" json:"upstream_model"`
	KeyIndex      int64    `db:"key_index" json:"key_index"`
	Outcome       string   `db:"outcome" json:"outcome"`
	Reason        string   `db:"reason" json:"reason"`
	Status        int64    `db:"status" json:"status"`
	Prompt        int64    `db:"prompt_tokens" json:"prompt_tokens"`
	Completion    int64    `db:"completion_tokens" json:"completion_tokens"`
	Total         int64    `db:"total_tokens" json:"total_tokens"`
	Cached        int64    `db:"cached_tokens" json:"cached_tokens"`
	Cost          *float64 `db:"cost" json:"cost"` // nil = not known
	LatencyMS     int64    `db:"latency_ms" json:"latency_ms"`
	CreatedAt     Time     `db:"created_at" json:"created_at"` // when it began
	Headers       Headers  `db:"headers" json:"headers,omitempty"`
}

// Logs says which events are wanted. An empty member says nothing.
type Logs struct {
	Page

	Level    string `json:"level,omitempty"`
	Category string `json:"category,omitempty"`
	Request  string `json:"request_id,omitempty"`
	Text     string `json:"text,omitempty"` // that the message holds, in whatever case of ASCII letters
}

// ChangedSettings are values of live settings by the paths of the settings. They have been checked.
type ChangedSettings struct {
	Set   map[string]Document `json:"set,omitempty"`
	Clear []string            `json:"clear,omitempty"` // of those the file counts again
}

// SettingsStored tells which revision of the bucket of settings has what was stored.
type SettingsStored struct {
	Status   string `json:"status"` // Success
	Revision uint64 `json:"revision"`
}

// LogEntry is a stored event.
type LogEntry struct {
	ID        int64    `db:"id" json:"id"`
	Level     string   `db:"level" json:"level"`
	Category  string   `db:"category" json:"category"`
	Message   string   `db:"message" json:"message"`
	RequestID string   `db:"request_id" json:"request_id,omitempty"`
	Metadata  Document `db:"metadata" json:"metadata"`
	CreatedAt Time     `db:"created_at" json:"created_at"`
}

// Stats sums what is stored. The sums cover the days that the daily sums are kept for.
type Stats struct {
	TotalTokens    int64           `db:"total_tokens" json:"total_tokens"`
	TotalRequests  int64           `db:"total_requests" json:"total_requests"`
	TotalCost      *float64        `db:"total_cost" json:"total_cost"` // in the currency of the prices; nil = none is known
	LostCalls      int64           `db:"lost_calls" json:"lost_calls"` // upstream calls that are kept and whose end nobody told: they may cost more
	Providers      []ProviderUsage `db:"-" json:"providers"`
	Clients        []ClientTotal   `db:"-" json:"clients"`
	Health         []Health        `db:"-" json:"health"`
	Scraping       Scraping        `db:"-" json:"scraping"`
	RecentScraping []Scrape        `db:"-" json:"recent_scraping"`
}

// ProviderUsage sums the requests for one model at one provider. Count includes requests that failed; the provider is empty when none was
// tried. Tokens are those of the calls that ended the requests, costs those of all calls, also of those that failed before.
type ProviderUsage struct {
	Provider   string   `db:"provider" json:"provider"`
	Model      string   `db:"model" json:"model"`
	Prompt     int64    `db:"prompt" json:"prompt"`
	Completion int64    `db:"completion" json:"completion"`
	Total      int64    `db:"total" json:"total"`
	Count      int64    `db:"count" json:"count"`
	Errors     int64    `db:"errors" json:"errors"`
	Cost       *float64 `db:"cost" json:"cost"` // nil = not known
}

// Health is the last known state of a provider.
type Health struct {
	Provider   string `db:"provider" json:"provider"`
	Status     string `db:"status" json:"status"`
	LastError  string `db:"last_error" json:"last_error"`
	ActiveKeys int64  `db:"active_keys" json:"active_keys"`
	FailedKeys int64  `db:"failed_keys" json:"failed_keys"`
	UpdatedAt  Time   `db:"updated_at" json:"updated_at"`
}

// Scraping sums the web fetches and searches that are kept; a hit is one that led to a text or to results, be it from the cache.
type Scraping struct {
	Total  int64    `db:"total" json:"total"`
	Hits   int64    `db:"hits" json:"hits"`
	Fails  int64    `db:"fails" json:"fails"`
	Recent []Scrape `db:"-" json:"recent"`
}

// Scrape is one web fetch, or one search, which has no URL.
type Scrape struct {
	URL       string `db:"url" json:"url"`
	Query     string `db:"query" json:"query"`
	Status    string `db:"status" json:"status"`
	Chars     int64  `db:"chars_count" json:"chars_count"`
	Summary   string `db:"response_summary" json:"response_summary"`
	LatencyMS int64  `db:"latency_ms" json:"latency_ms"`
	CreatedAt Time   `db:"created_at" json:"created_at"`
}

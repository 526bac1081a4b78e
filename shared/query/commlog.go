package query

import "time"

// Operations on the communication log of one dispatcher.
var (
	// GetCommLog gives its newest entries, newest first; GET /v1/admin/comm-logs.
	GetCommLog = Op[CommLogs, []CommEntry]{Dispatcher, "comm_log", 10 * time.Second}
	// ClearCommLog forgets them; DELETE /v1/admin/comm-logs.
	ClearCommLog = Op[None, Done]{Dispatcher, "clear_comm_log", 10 * time.Second}
)

// CommLogs says how many entries are wanted: 1 to 1000.
type CommLogs struct {
	Limit int `json:"limit"`
}

// Directions of an entry.
const (
	CommRequest  = "request"
	CommResponse = "response"
)

// CommEntry is a call to a provider, or what came of one.
type CommEntry struct {
	At        Time        `json:"ts"`
	Direction string      `json:"direction"` // CommRequest or CommResponse
	Provider  string      `json:"provider"`
	RequestID string      `json:"request_id,omitempty"`
	Payload   CommPayload `json:"payload"`
}

// CommPayload is what an entry says of a call. It holds no texts.
type CommPayload struct {
	Model string `json:"model"` // as the provider calls it

	// Of a request.
	Messages *int  `json:"messages_count,omitempty"`
	Search   *bool `json:"has_search,omitempty"`
	Stream   *bool `json:"stream,omitempty"`

	// Of a response.
	FinishReasons []string   `json:"finish_reasons,omitempty"`
	Usage         *CommUsage `json:"usage,omitempty"`
	Status        int        `json:"status,omitempty"` // of HTTP
	Error         string     `json:"error,omitempty"`  // class of the failure
}

// CommUsage counts tokens.
type CommUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

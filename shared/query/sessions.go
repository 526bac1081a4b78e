package query

import "time"

// Operations on sessions. A session that does not exist is a fault of kind fault.NotFound.
var (
	// ListSessions gives the sessions that were used last, newest first; GET /v1/admin/sessions.
	ListSessions = Op[Sessions, []Session]{SessionWriter, "sessions", 10 * time.Second}
	// NewSession makes an empty one, which belongs to whoever uses it first; POST /v1/admin/sessions/new.
	NewSession = Op[None, SessionMade]{SessionWriter, "new_session", 10 * time.Second}
	// GetMessages gives a part of the messages of a session, those of answers that have come included; GET /v1/admin/sessions/{id}/messages.
	GetMessages = Op[Messages, MessagePage]{SessionWriter, "messages", 20 * time.Second}
	// GetSession gives what is known of a session; POST /v1/admin/sessions/import.
	GetSession = Op[SessionID, Session]{SessionWriter, "session", 10 * time.Second}
	// DeleteSession removes one with all that it holds; DELETE /v1/admin/sessions/{id}.
	DeleteSession = Op[SessionID, Done]{SessionWriter, "delete_session", 20 * time.Second}
	// CleanSessions removes those that were not used for some days; POST /v1/admin/sessions/cleanup.
	CleanSessions = Op[Cleanup, Cleaned]{SessionWriter, "clean_sessions", time.Minute}
	// ForkSession copies one up to a message; POST /v1/admin/sessions/{id}/fork.
	ForkSession = Op[Fork, SessionMade]{SessionWriter, "fork_session", 30 * time.Second}
)

// Sessions says how many sessions are wanted: 1 to 1000.
type Sessions struct {
	Limit int `json:"limit"`
}

// SessionID names a session.
type SessionID struct {
	ID string `json:"session_id"`
}

// Session is what is known of a session beside its messages.
type Session struct {
	ID            string `db:"id" json:"session_id"`
	ProjectID     string `db:"project_id" json:"project_id"`
	Parent        string `db:"parent_session_id" json:"parent_session_id,omitempty"`
	ForkPoint     string `db:"fork_point_message_id" json:"fork_point_message_id,omitempty"`
	Owner         string `db:"owner" json:"owner,omitempty"` // the principal who used it first
	Title         string `db:"title" json:"title"`
	CreatedAt     Time   `db:"created_at" json:"created_at"`
	UpdatedAt     Time   `db:"updated_at" json:"updated_at"`
	MessageCount  int64  `db:"message_count" json:"message_count"`
	LastModel     string `db:"last_model" json:"last_model"`
	LastProvider  string `db:"last_provider" json:"last_provider"`
	SummaryTokens int64  `db:"summary_token_count" json:"summary_token_count"`
}

// SessionMade names a session that was made.
type SessionMade struct {
	Status string `json:"status"` // Success
	ID     string `json:"session_id"`
}

// Messages asks for the messages behind one of them, "" for the first.
type Messages struct {
	ID    string `json:"session_id"`
	After string `json:"after,omitempty"` // id of a message
}

// MessagePage is a part of the messages of a session, in their order.
type MessagePage struct {
	Messages []Message `json:"messages"`
	More     bool      `json:"more,omitempty"` // there are others behind
}

// States of a message that is not simply part of the conversation.
const (
	MessageUnanswered = "unanswered" // a question without a whole answer: it is not sent again
	MessagePartial    = "partial"    // an answer that broke off: neither
)

// Message is a stored message.
type Message struct {
	ID        string   `json:"id"`
	Role      string   `json:"role"`
	State     string   `json:"state,omitempty"` // MessageUnanswered, MessagePartial or ""
	Content   Document `json:"content"`         // a text, an array of parts, or null
	Parts     []Part   `json:"parts"`
	CreatedAt Time     `json:"created_at"`
	Body      Document `json:"message"` // as Chat Completions has it; null when it is too long to be shown
}

// Part is a part of a message, or something that belongs to it.
type Part struct {
	Type string   `json:"type"`
	Data Document `json:"data"`
}

// Cleanup says for how many days a session must not have been used: 1 to 365; 0 for the setting.
type Cleanup struct {
	Days int `json:"days"`
}

// Cleaned counts the sessions that were removed.
type Cleaned struct {
	Status  string `json:"status"` // Success
	Deleted int64  `json:"deleted_count"`
}

// Fork says where a session forks: at a message, which is copied too; "" for its last one.
type Fork struct {
	ID      string `json:"session_id"`
	Message string `json:"message_id"`
}

package contract

import "time"

// TurnKind says what a Turn tells. It is the last token of the subject.
type TurnKind string

// Kinds of turn facts.
const (
	TurnAsked    TurnKind = "asked"    // the user's messages, which could not be saved when they came
	TurnAnswered TurnKind = "answered" // a whole answer
	TurnFailed   TurnKind = "failed"   // an answer that broke off: it is no part of later prompts
)

// Turn is the fact of a step in a session. Facts of one request and kind tell the same.
type Turn struct {
	Session   string   `json:"session_id"`
	RequestID string   `json:"request_id"`
	Principal string   `json:"principal,omitempty"`
	Surface   Surface  `json:"surface,omitempty"`
	Messages  []string `json:"messages"` // as Chat Completions has them, byte for byte
	// Unsaved says that the question was not in the database when the answer came: it is in a fact of its own.
	Unsaved bool `json:"unsaved,omitempty"`

	// Of an answer.
	Model     string `json:"model,omitempty"` // at the provider
	Provider  string `json:"provider,omitempty"`
	KeyIndex  int    `json:"key_index,omitempty"`
	Tokens    int64  `json:"tokens,omitempty"`
	LatencyMS int64  `json:"latency_ms,omitempty"`
	Truncated bool   `json:"truncated,omitempty"` // the text was cut, because it is too long to be kept

	At   time.Time `json:"at"`
	Kind TurnKind  `json:"-"`
}

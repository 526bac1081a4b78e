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

// Message is a message of a conversation.
type Message struct {
	Body []byte // as Chat Completions has it
	// Original is the message as the surface has it that it came over; nil when that is the same. What the surface has as one message may be
	// several in Chat Completions: then the first has the original, and the others are Within.
	Original []byte
	Within   bool // its text is in the Original of a message before it
}

// OriginalWithin stands for the original of a message that is Within, where originals are kept as text.
const OriginalWithin = "^"

// OriginalText gives the original as it is kept; "" = there is none.
func (m *Message) OriginalText() string {
	if m.Within {
		return OriginalWithin
	}
	return string(m.Original)
}

// ReadMessage gives a message that is kept as two texts.
func ReadMessage(body, original string) Message {
	m := Message{Body: []byte(body), Within: original == OriginalWithin}
	if original != "" && !m.Within {
		m.Original = []byte(original)
	}
	return m
}

// Turn is the fact of a step in a session. Facts of one request and kind tell the same.
type Turn struct {
	Session   string   `json:"session_id"`
	RequestID string   `json:"request_id"`
	Principal string   `json:"principal,omitempty"`
	Surface   Surface  `json:"surface,omitempty"`
	Messages  []string `json:"messages"` // as Chat Completions has them, byte for byte
	// Originals are the messages as the surface has them (Message.OriginalText), at the same places; nil when they are the same.
	Originals []string `json:"originals,omitempty"`
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

// Add adds a message.
func (t *Turn) Add(m Message) {
	if original := m.OriginalText(); original != "" {
		t.Originals = append(t.Originals, make([]string, len(t.Messages)-len(t.Originals))...)
		t.Originals = append(t.Originals, original)
	}
	t.Messages = append(t.Messages, string(m.Body))
}

// Message gives one of the messages.
func (t *Turn) Message(i int) Message {
	original := ""
	if i < len(t.Originals) {
		original = t.Originals[i]
	}
	return ReadMessage(t.Messages[i], original)
}

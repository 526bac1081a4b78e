package contract

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Endpoint is what a client called, as the ledger names it: for what has no name here, the route below /v1 with dots, such as "audio.speech".
type Endpoint string

// Endpoints.
const (
	EndpointChat        Endpoint = "chat.completions" // POST /v1/chat/completions
	EndpointMessages    Endpoint = "messages"         // POST /v1/messages
	EndpointResponses   Endpoint = "responses"        // POST /v1/responses
	EndpointCompletions Endpoint = "completions"      // POST /v1/completions
	EndpointEmbeddings  Endpoint = "embeddings"       // POST /v1/embeddings
)

// answers are the endpoints that ask for an answer of a model, by the protocol of the client.
var answers = map[Surface]Endpoint{
	SurfaceChat: EndpointChat, SurfaceMessages: EndpointMessages, SurfaceResponses: EndpointResponses, SurfaceCompletions: EndpointCompletions,
}

// EndpointOf names what is called for an operation over a surface. An operation of which there is one has its own name.
func EndpointOf(o Operation, s Surface) Endpoint {
	if e, ok := answers[s]; ok && o == Chat {
		return e
	}
	return Endpoint(strings.ReplaceAll(string(o), "/", "."))
}

// RequestRecord is the fact of one finished request: what it cost, who answered, and every upstream call that was made for it.
type RequestRecord struct {
	RequestID     string    `json:"request_id"`
	SessionID     string    `json:"session_id,omitempty"`
	Endpoint      Endpoint  `json:"endpoint"`
	Model         string    `json:"model"`                    // the name the client sent
	Provider      string    `json:"provider,omitempty"`       // of the upstream that answered
	Upstream      string    `json:"upstream,omitempty"`       //
	UpstreamModel string    `json:"upstream_model,omitempty"` //
	KeyIndex      int       `json:"key_index"`                // never the key
	Status        string    `json:"status"`                   // "success", "cancelled" or "error: CATEGORY"
	RoutingReason string    `json:"routing_reason,omitempty"`
	Stream        bool      `json:"stream,omitempty"`
	Prompt        int64     `json:"prompt_tokens"`
	Completion    int64     `json:"completion_tokens"`
	Total         int64     `json:"total_tokens"`
	LatencyMS     int64     `json:"latency_ms"`               // from arrival at the ingress to the last byte
	FirstTokenMS  int64     `json:"first_token_ms,omitempty"` // from arrival to the commit of the answer
	Attempts      []Attempt `json:"attempts,omitempty"`
	At            time.Time `json:"at"`
}

// Attempt is one upstream call of a request, in order.
type Attempt struct {
	Upstream   string `json:"upstream"`
	Provider   string `json:"provider"`
	Outcome    string `json:"outcome"`          // success | failed | cancelled | lost
	Reason     string `json:"reason,omitempty"` // class of the failure, safe to show
	Status     int    `json:"status,omitempty"` // HTTP status of the upstream, 0 without one
	DurationMS int64  `json:"duration_ms"`
}

// Log is the fact of an event worth keeping in the database. It never holds prompts, answers or keys.
type Log struct {
	ID        string          `json:"id,omitempty"` // of the event: another one with this id is the same event; "" = its content says which it is
	Level     string          `json:"level"`        // INFO | WARNING | ERROR
	Category  string          `json:"category"`     // ROUTING | WEB_ENRICH | LLM_EXECUTION | AGENT_EXECUTION
	Message   string          `json:"message"`
	RequestID string          `json:"request_id,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	At        time.Time       `json:"at"`
}

// ErrClientGone is why work on a request ends whose client has left.
var ErrClientGone = errors.New("the client left")

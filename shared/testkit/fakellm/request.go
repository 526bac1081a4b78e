package fakellm

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Request is one request as the server saw it. It is a copy.
type Request struct {
	Method string
	Path   string // with the query
	Header http.Header
	Body   []byte
	At     time.Time
	Ended  time.Time // zero while it is being answered
	Left   time.Time // when the client was seen to leave before the end of the answer; zero if it did not

	answered bool // counts no more as being answered
}

// Streams says whether the body asks for a stream.
func (r Request) Streams() bool {
	var b struct{ Stream bool }
	return json.Unmarshal(r.Body, &b) == nil && b.Stream
}

// Model is the model that the body names.
func (r Request) Model() string {
	var b struct{ Model string }
	if json.Unmarshal(r.Body, &b) != nil {
		return ""
	}
	return b.Model
}

// Key is the bearer key of the request, or "".
func (r Request) Key() string {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return key
}

package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// RequestOf gives the id of the request that a response answers.
func RequestOf(response string) (request string, ok bool) {
	return strings.CutPrefix(response, prefixResponse)
}

const prefixResponse = "resp_"

// ResponseID gives the id of the response to a request. Those of its output items are a prefix, the id of the request and a number, with _ between them.
func ResponseID(request string) string { return prefixResponse + request }

// ResponseOfItem gives the id of the response that an item belongs to by its id, whether there is one or not. ok is false for an id that no response gives.
func ResponseOfItem(item string) (id string, ok bool) {
	_, rest, _ := strings.Cut(item, "_")
	request, number, found := strings.Cut(rest, "_")
	if !found || request == "" || number == "" || strings.Contains(number, "_") {
		return "", false
	}
	return ResponseID(request), true
}

// StoredResponse is the fact of a response that is kept for later requests. Facts of one response tell the same.
type StoredResponse struct {
	ID       string
	Previous string // id of the response that it goes on from; "" = none
	Owner    string // principal
	Input    []byte // array of the items of its own request, as received
	Response []byte // as the client got it
	At       time.Time
}

// MaxStoredResponse bounds input and response of a fact together, in bytes: it is one message, of which a batch may hold many.
const MaxStoredResponse = 4 << 20

// storedHead is what stands before the two documents of a fact, on a line of its own.
type storedHead struct {
	ID       string    `json:"id"`
	Previous string    `json:"previous,omitempty"`
	Owner    string    `json:"owner"`
	Input    int       `json:"input"` // size in bytes
	At       time.Time `json:"at"`
}

// Encode gives the fact as a message: a line that says what it is, then the documents as they are.
func (s *StoredResponse) Encode() ([]byte, error) {
	head, err := json.Marshal(storedHead{s.ID, s.Previous, s.Owner, len(s.Input), s.At})
	if err != nil {
		return nil, fmt.Errorf("encoding a response: %w", err)
	}
	out := make([]byte, 0, len(head)+1+len(s.Input)+len(s.Response))
	out = append(append(out, head...), '\n')
	return append(append(out, s.Input...), s.Response...), nil
}

// ErrNotAResponse says that a message is no StoredResponse.
var ErrNotAResponse = errors.New("message is no stored response")

// ParseStoredResponse reads a message of Encode, which it aliases. The error wraps ErrNotAResponse.
func ParseStoredResponse(data []byte) (s StoredResponse, err error) {
	line, rest, found := bytes.Cut(data, []byte{'\n'})
	if !found {
		return s, fmt.Errorf("%w: it has one line", ErrNotAResponse)
	}
	var head storedHead
	if err := json.Unmarshal(line, &head); err != nil {
		return s, fmt.Errorf("%w: %w", ErrNotAResponse, err)
	}
	if head.ID == "" || head.Input < 0 || head.Input > len(rest) {
		return s, fmt.Errorf("%w: its head is wrong", ErrNotAResponse)
	}
	s = StoredResponse{ID: head.ID, Previous: head.Previous, Owner: head.Owner, At: head.At, Input: rest[:head.Input], Response: rest[head.Input:]}
	if !isDocument(s.Input, '[') || !isDocument(s.Response, '{') {
		return StoredResponse{}, fmt.Errorf("%w: a document is wrong", ErrNotAResponse)
	}
	return s, nil
}

func isDocument(text []byte, open byte) bool {
	return len(text) > 0 && text[0] == open && json.Valid(text)
}

package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hydrallm/shared/openai/rawjson"
)

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

// ErrNotLog says that a text is not the JSON of an event.
var ErrNotLog = errors.New("not an event")

// AppendJSON appends the event as encoding/json would write it. Every request has one. Metadata must be valid JSON, as compact as it is to be.
func (l *Log) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	if l.ID != "" {
		dst = append(rawjson.AppendString(append(dst, `"id":`...), l.ID), ',')
	}
	dst = rawjson.AppendString(append(dst, `"level":`...), l.Level)
	dst = rawjson.AppendString(append(dst, `,"category":`...), l.Category)
	dst = rawjson.AppendString(append(dst, `,"message":`...), l.Message)
	dst = appendText(dst, "request_id", l.RequestID)
	if len(l.Metadata) > 0 {
		dst = append(append(dst, `,"metadata":`...), l.Metadata...)
	}
	dst = l.At.AppendFormat(append(dst, `,"at":"`...), time.RFC3339Nano)
	return append(dst, `"}`...)
}

// ParseLog reads an event back. Members that are not known are those of a later version and are left out. Nothing of it is part of text. The error
// wraps ErrNotLog.
func ParseLog(text []byte) (Log, error) {
	var l Log
	if len(text) == 0 || text[0] != '{' || !rawjson.Valid(text) {
		return l, fmt.Errorf("%w: no JSON object", ErrNotLog)
	}
	for m := range rawjson.Members(text) {
		value := m.Value.Of(text)
		if string(value) == "null" {
			continue
		}
		if name := string(m.Name()); !l.read(name, value) {
			return l, fmt.Errorf("%w: %s has the wrong type", ErrNotLog, name)
		}
	}
	return l, nil
}

func (l *Log) read(name string, value []byte) bool {
	switch name {
	case "id":
		return readText(&l.ID, value)
	case "level":
		return readText(&l.Level, value)
	case "category":
		return readText(&l.Category, value)
	case "message":
		return readText(&l.Message, value)
	case "request_id":
		return readText(&l.RequestID, value)
	case "metadata":
		l.Metadata = bytes.Clone(value)
	case "at":
		return readInstant(&l.At, value)
	}
	return true
}

package mockllm

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Models of the mock.
const (
	Model       = "mock"           // answers
	Embedding   = "mock-embedding" // makes vectors
	Unavailable = "unavailable"    // always answers 503, to see a gateway fail over
)

// created is the time stamp of everything, so that answers are the same at any time.
const created = 1700000000

const (
	maxBody    = 64 << 20
	maxChoices = 8
)

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	var req request
	id, fault := read(w, r, &req)
	if fault == nil {
		fault = req.check()
	}
	if fault != nil {
		fault.send(w)
		return
	}
	t := req.turn()
	if !pause(r, t.wait) {
		return
	}
	switch {
	case t.failure != nil:
		t.failure.send(w)
	case req.Stream:
		s.stream(w, r, &req, &t, id)
	default:
		s.complete(w, r, &req, &t, id)
	}
}

// read decodes the body and gives an id that follows from it.
func read(w http.ResponseWriter, r *http.Request, v any) (id string, fault *failure) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return "", &failure{status: http.StatusRequestEntityTooLarge, typ: "invalid_request_error", message: "The body is too large."}
	}
	if err := json.Unmarshal(body, v); err != nil {
		return "", invalid("", "We could not parse the JSON body of your request, or a member has the wrong type.")
	}
	id = identity("", string(body))
	w.Header().Set("X-Request-Id", "req_mock_"+id)
	return id, nil
}

// check refuses what OpenAI refuses.
func (req *request) check() *failure {
	format := &req.ResponseFormat
	switch {
	case req.Model == Unavailable:
		return failureOf(http.StatusServiceUnavailable)
	case req.Model == "":
		return invalid("model", "you must provide a model parameter")
	case req.Model != Model:
		return failureOf(http.StatusNotFound)
	case len(req.Messages) == 0:
		return invalid("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case req.choices() < 1 || req.choices() > maxChoices:
		return invalid("n", "n must be from 1 to "+strconv.Itoa(maxChoices))
	case format.Type == "json_schema" && (format.JSONSchema.Name == "" || len(format.JSONSchema.Schema) == 0):
		return invalid("response_format.json_schema", "Missing required parameter: name or schema.")
	case slices.ContainsFunc(req.Tools, func(t tool) bool { return t.Type != "function" || t.Function.Name == "" }):
		return invalid("tools", "A tool must be a function with a name.")
	case len(req.Tools) == 0 && req.ToolChoice != nil && string(req.ToolChoice) != "null":
		return invalid("tool_choice", "'tool_choice' is only allowed when 'tools' are specified.")
	}
	return checkHistory(req.Messages)
}

// checkHistory sees that the calls of tools and their results belong together.
func checkHistory(messages []message) *failure {
	open := map[string]bool{}
	unanswered := invalid("messages", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
	for i, m := range messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return invalid("messages.["+strconv.Itoa(i)+"].role",
					"Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			return unanswered
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return unanswered
	}
	return nil
}

// pause waits and says whether the client is still there.
func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

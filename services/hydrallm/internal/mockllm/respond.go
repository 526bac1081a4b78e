package mockllm

import (
	"encoding/json"
	"io"
	"net/http"

	"hydrallm/shared/fault"
)

// events writes server-sent events and keeps the first error.
type events struct {
	w     io.Writer
	flush *http.ResponseController
	err   error
}

func (e *events) json(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		e.err = err
		return
	}
	e.text(string(b))
}

func (e *events) text(data string) {
	if e.err != nil {
		return
	}
	if _, e.err = io.WriteString(e.w, "data: "+data+"\n\n"); e.err == nil {
		e.err = e.flush.Flush()
	}
}

func listModels(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	send(w, http.StatusOK, map[string]any{"object": "list", "data": []model{
		{Model, "model", created, "hydrallm"}, {Unavailable, "model", created, "hydrallm"},
	}})
}

func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have left
}

func fail(w http.ResponseWriter, status int, text string) {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write((&fault.Fault{Kind: fault.Refused, Message: text, ErrorType: kind}).AppendJSON(nil)) // the client may have left
}

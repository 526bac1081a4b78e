package mockllm

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

// Models of the mock.
const (
	Model       = "mock"        // answers
	Unavailable = "unavailable" // always answers 503, to see a gateway fail over
)

// created is the time stamp of everything, so that answers are the same at any time.
const created = 1700000000

const maxBody = 64 << 20

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "the body is too large")
		return
	}
	var req request
	switch err := json.Unmarshal(body, &req); {
	case err != nil:
		fail(w, http.StatusBadRequest, "the body is not a chat request")
	case len(req.Messages) == 0:
		fail(w, http.StatusBadRequest, "messages is empty")
	case req.Model == Unavailable:
		fail(w, http.StatusServiceUnavailable, "this model is never available")
	case req.Model != Model:
		fail(w, http.StatusNotFound, "the model does not exist")
	case req.Stream:
		s.stream(w, r, &req)
	default:
		s.complete(w, r, &req)
	}
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request, req *request) {
	said := answer(req)
	if !pause(r, s.cfg.Delay*time.Duration(len(strings.Fields(said)))) {
		return
	}
	send(w, http.StatusOK, completion{
		ID: identity(said), Object: "chat.completion", Created: created, Model: Model,
		Choices: []choice{{Message: &reply{Role: "assistant", Content: said}, FinishReason: new("stop")}}, Usage: tokens(req, said),
	})
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request, req *request) {
	said := answer(req)
	chunk := completion{ID: identity(said), Object: "chat.completion.chunk", Created: created, Model: Model}
	out := events{w: w, flush: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	emit := func(choices ...choice) {
		chunk.Choices = append([]choice{}, choices...)
		out.json(chunk)
	}
	emit(choice{Delta: &reply{Role: "assistant"}})
	for word := range strings.SplitAfterSeq(said, " ") {
		if !pause(r, s.cfg.Delay) || out.err != nil {
			return
		}
		emit(choice{Delta: &reply{Content: word}})
	}
	emit(choice{Delta: &reply{}, FinishReason: new("stop")})
	if req.StreamOptions.IncludeUsage {
		chunk.Usage = tokens(req, said)
		emit()
	}
	out.text("[DONE]")
}

// pause waits and says whether the client is still there.
func pause(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

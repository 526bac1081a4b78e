package fakellm

import (
	"encoding/json"
	"io"
	"net/http"
)

// Offer sets the models that the server lists. Listing them is no request in the sense of Requests, Queue and Handle.
func (s *Server) Offer(models ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = models
}

// Page sets what a GET of a path gives, a JSON text, instead of the list of models.
func (s *Server) Page(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages == nil {
		s.pages = map[string]string{}
	}
	s.pages[path] = text
}

// Listings gives how often the models were listed, by the Authorization header of the request.
func (s *Server) Listings() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for _, auth := range s.listings {
		counts[auth]++
	}
	return counts
}

// list answers any GET that has no page.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.listings = append(s.listings, r.Header.Get("Authorization"))
	page, ok := s.pages[r.URL.Path]
	data := []map[string]string{}
	for _, id := range s.models {
		data = append(data, map[string]string{"id": id, "object": "model"})
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if ok {
		_, _ = io.WriteString(w, page)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data}) // the client may have left
}

package mockllm

import "net/http"

type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

var models = []model{
	{Model, "model", created, "hydrallm"}, {Embedding, "model", created, "hydrallm"}, {Unavailable, "model", created, "hydrallm"},
}

func listModels(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, encode(map[string]any{"object": "list", "data": models}))
}

func showModel(w http.ResponseWriter, r *http.Request) {
	for _, m := range models {
		if m.ID == r.PathValue("id") {
			send(w, http.StatusOK, encode(m))
			return
		}
	}
	failureOf(http.StatusNotFound).send(w)
}

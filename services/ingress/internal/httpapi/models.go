package httpapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/fault"
)

// Model is an entry of the model list.
type Model struct {
	ID           string       `json:"id"`
	Object       string       `json:"object"`
	Created      int64        `json:"created"`
	OwnedBy      string       `json:"owned_by"`
	DisplayName  string       `json:"display_name"`
	Tier         string       `json:"tier"`
	Description  string       `json:"description"`
	Capabilities Capabilities `json:"capabilities"`
}

// Capabilities are what is known about a model; null is unknown.
type Capabilities struct {
	MaxTokens    *int     `json:"max_tokens"`
	Multimodal   *bool    `json:"multimodal"`
	HasSearch    *bool    `json:"has_search"`
	CostPerToken *float64 `json:"cost_per_token"`
}

// models holds the encoded answers.
type models struct {
	list []byte
	byID map[string][]byte
}

// newModels encodes the entries once. Of two with the same id the first one counts.
func newModels(entries []Model, now time.Time) *models {
	m := &models{byID: make(map[string][]byte, len(entries))}
	data := []json.RawMessage{}
	for _, e := range entries {
		if _, known := m.byID[e.ID]; known {
			continue
		}
		e.Object, e.Created = "model", now.Unix()
		if e.DisplayName == "" {
			e.DisplayName = e.ID
		}
		m.byID[e.ID] = encode(e)
		data = append(data, m.byID[e.ID])
	}
	m.list = encode(map[string]any{"object": "list", "data": data})
	return m
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil { // strings and numbers always marshal
		panic(err)
	}
	return body
}

func (a *API) listModels(x *exchange) error {
	x.json(fasthttp.StatusOK, a.models.list)
	return nil
}

// showModel gives one entry. Ids hold slashes and colons, escaped or not (URL-03), so the path is taken as the client sent it.
func (a *API) showModel(x *exchange) error {
	id, err := url.PathUnescape(strings.TrimPrefix(string(x.URI().PathOriginal()), pathModels+"/"))
	if err == nil {
		if body, ok := a.models.byID[id]; ok {
			x.json(fasthttp.StatusOK, body)
			return nil
		}
	}
	return fault.New(fault.ModelNotFound, "There is no model with this id")
}

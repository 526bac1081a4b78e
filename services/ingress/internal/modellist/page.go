package modellist

import (
	"encoding/json"
	"strconv"
	"time"
)

// entry is a Model as Anthropic lists it.
type entry struct {
	Type           string `json:"type"`
	ID             string `json:"id"`
	DisplayName    string `json:"display_name"`
	CreatedAt      string `json:"created_at"`
	MaxInputTokens *int   `json:"max_input_tokens"`
	MaxTokens      *int   `json:"max_tokens"` // of an answer: nobody tells
}

// entryOf gives the JSON of a complete model.
func entryOf(m Model) []byte {
	text, err := json.Marshal(entry{
		Type: "model", ID: m.ID, DisplayName: m.DisplayName, CreatedAt: time.Unix(m.Created, 0).UTC().Format(time.RFC3339), MaxInputTokens: m.Capabilities.MaxTokens,
	})
	if err != nil { // strings and numbers always marshal
		panic(err)
	}
	return text
}

// Page is a part of the list, in Anthropic's words: the entries behind one, or before one, and how many at most; 0 = all.
type Page struct {
	After, Before string
	Limit         int
}

// Page gives the answer that lists a part of the models as Anthropic does. It is false when After or Before is no model.
func (a *answers) Page(p Page) (body []byte, ok bool) {
	from, to := 0, len(a.entries)
	if p.After != "" {
		if from, ok = a.at[p.After]; !ok {
			return nil, false
		}
		from++
	}
	if p.Before != "" {
		if to, ok = a.at[p.Before]; !ok {
			return nil, false
		}
	}
	from = min(from, to)
	more := false
	if n := to - from; p.Limit > 0 && n > p.Limit {
		more = true
		if p.Before != "" && p.After == "" { // the last ones before it
			from = to - p.Limit
		} else {
			to = from + p.Limit
		}
	}
	body = append(body, `{"data":[`...)
	for i, e := range a.entries[from:to] {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, e.text...)
	}
	first, last := []byte("null"), []byte("null")
	if from < to {
		first, last = a.entries[from].id, a.entries[to-1].id
	}
	body = strconv.AppendBool(append(body, `],"has_more":`...), more)
	body = append(append(body, `,"first_id":`...), first...)
	body = append(append(body, `,"last_id":`...), last...)
	return append(body, '}'), true
}

// Entry gives the answer for one model as Anthropic has it. It must not be changed.
func (a *answers) Entry(id string) (body []byte, ok bool) {
	i, ok := a.at[id]
	if !ok {
		return nil, false
	}
	return a.entries[i].text, true
}

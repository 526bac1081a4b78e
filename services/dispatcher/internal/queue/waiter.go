package queue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"hydrallm/shared/contract"
)

// Waiter is a request that waits for a slot.
type Waiter struct {
	Request  string // its id
	Model    string
	Priority contract.Priority
	Since    time.Time // when the gateway got it, so that one that comes back from a dead dispatcher has the place that it had

	rank  int64 // Unix milliseconds; the smallest one is first
	seen  time.Time
	place *Place // nil for one of another dispatcher
	taken bool   // another dispatcher says that it has a request of ours
}

// Limits are what a queue allows.
type Limits struct {
	Length int           // requests that may wait
	Wait   time.Duration // for this long
}

// A priority counts as much as this part of Limits.Wait spent in the queue. So a request of the lowest one is before all that come a quarter of that later,
// and is not passed by for ever.
const agingParts = 8

// rankOf is when a request has come, moved by what its priority is worth.
func rankOf(w Waiter, wait time.Duration) int64 {
	return w.Since.Add(time.Duration(w.Priority.Level()) * wait / agingParts).UnixMilli()
}

func order(a, b *Waiter) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.Request, b.Request))
}

// place finds where a waiter is, or belongs, in a line.
func place(line []*Waiter, w *Waiter) (int, bool) { return slices.BinarySearchFunc(line, w, order) }

// entry is a waiter in the store.
type entry struct {
	Model    string            `json:"model"`
	Priority contract.Priority `json:"priority,omitempty"`
	Since    int64             `json:"since"` // Unix milliseconds
	Rank     int64             `json:"rank"`
	Owner    string            `json:"owner"` // the dispatcher that has it
}

func (w *Waiter) encode(owner string) ([]byte, error) {
	data, err := json.Marshal(entry{w.Model, w.Priority, w.Since.UnixMilli(), w.rank, owner})
	if err != nil {
		return nil, fmt.Errorf("writing an entry of a queue: %w", err)
	}
	return data, nil
}

func decode(request string, data []byte) (w Waiter, owner string, ok bool) {
	var e entry
	if json.Unmarshal(data, &e) != nil || e.Model == "" || e.Owner == "" {
		return w, "", false
	}
	return Waiter{Request: request, Model: e.Model, Priority: e.Priority, Since: time.UnixMilli(e.Since), rank: e.Rank}, e.Owner, true
}

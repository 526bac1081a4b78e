package slot

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

// record is what the store holds for one upstream: how many slots each dispatcher uses, and until when that is to be believed. A dispatcher
// always writes its whole count, so the record heals with the next write of everyone, whatever was lost.
type record map[string]share // by owner

type share struct {
	Slots int   `json:"n"`
	Until int64 `json:"until"` // Unix milliseconds
}

// keyOf is the store's key of an upstream; any name becomes a valid key.
func keyOf(id string) string { return "slot." + base64.RawURLEncoding.EncodeToString([]byte(id)) }

func decodeRecord(value []byte) (record, error) {
	r := record{}
	if len(value) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, fmt.Errorf("reading a record of slots: %w", err)
	}
	return r, nil
}

func (r record) encode() []byte {
	value, err := json.Marshal(r)
	if err != nil { // strings and integers always marshal
		panic(fmt.Sprintf("encoding a record of slots: %v", err))
	}
	return value
}

// others is how many slots living owners other than this one use.
func (r record) others(owner string, now time.Time) int {
	n := 0
	for id, s := range r {
		if id != owner && s.Until > now.UnixMilli() {
			n += s.Slots
		}
	}
	return n
}

// with gives the record after owner uses n slots until then. The dead are left out.
func (r record) with(owner string, n int, now, until time.Time) record {
	next := make(record, len(r)+1)
	for id, s := range r {
		if id != owner && s.Until > now.UnixMilli() {
			next[id] = s
		}
	}
	if n > 0 {
		next[owner] = share{Slots: n, Until: until.UnixMilli()}
	}
	return next
}

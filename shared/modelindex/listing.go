package modelindex

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"hydrallm/shared/contract"
)

// Model is one model at a provider. A number is 0 and a flag false when the provider does not tell.
type Model struct {
	ID        string            `json:"id"`             // as the provider takes it, in its spelling (B-14)
	Name      string            `json:"name,omitempty"` // for people
	Tier      string            `json:"tier"`           // contract.TierFree and its like
	Window    int               `json:"window,omitempty"`
	Output    int               `json:"output,omitempty"`    // most tokens of an answer
	Can       contract.Features `json:"can,omitempty"`       // what it is known to have
	Cannot    contract.Features `json:"cannot,omitempty"`    // what it is known not to have; of what is in neither set nothing is known
	Embedding bool              `json:"embedding,omitempty"` // makes vectors, and no text
}

// Fit says how well a model suits what a request needs.
type Fit uint8

// Fits, the best first.
const (
	Fits   Fit = iota // it is known to have all of it
	MayFit            // of some of it nothing is known
	Unfit             // it is known not to have some of it
)

// Fit judges the model.
func (m Model) Fit(needs contract.Features) Fit {
	switch {
	case m.Cannot.Any(needs):
		return Unfit
	case m.Can.Has(needs):
		return Fits
	}
	return MayFit
}

// Listing is what one provider offers.
type Listing struct {
	Provider string    `json:"provider"`
	From     string    `json:"from,omitempty"` // tells where it was asked, so that a list from another place can be told apart
	Models   []Model   `json:"models"`         // the preferred ones first
	At       time.Time `json:"at"`
}

// Model gives the model with exactly this id.
func (l Listing) Model(id string) (Model, bool) {
	for _, m := range l.Models {
		if m.ID == id {
			return m, true
		}
	}
	return Model{}, false
}

// maxListing bounds a listing when it is read, in bytes of JSON.
const maxListing = 16 << 20

// encode makes the value of a bucket. It is compressed, so that thousands of models fit into one message.
func (l Listing) encode() ([]byte, error) {
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	if err := json.NewEncoder(zw).Encode(l); err != nil {
		return nil, fmt.Errorf("encoding the models of %s: %w", l.Provider, err)
	}
	if err := zw.Close(); err != nil {
		return nil, fmt.Errorf("compressing the models of %s: %w", l.Provider, err)
	}
	return b.Bytes(), nil
}

func decode(value []byte) (Listing, error) {
	var l Listing
	zr, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return l, fmt.Errorf("reading a listing: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(zr, maxListing)).Decode(&l); err != nil {
		return l, fmt.Errorf("reading a listing: %w", err)
	}
	return l, nil
}

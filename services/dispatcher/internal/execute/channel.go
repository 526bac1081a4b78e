// Package execute answers a request with the help of upstreams: it walks the chain of channels, calls one after the other until an answer
// is committed, and reports what happened.
package execute

import (
	"net/http"
	"time"

	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/openai"
)

// Channel is one upstream model as this process calls it. It is built once from the configuration and never changed.
type Channel struct {
	ID             string // id of the upstream
	Provider       string
	Vendor         string        // known vendor or dialect whose habits matter for errors, or ""
	Model          string        // the upstream's own name of the model
	URL            string        // of the chat completions operation
	Key            string        // the one key of the channel; "" = no Authorization header
	Pool           *keypool.Pool // the keys of its provider, when that has a pool; nil otherwise
	Header         http.Header   // static request headers
	Limit          int           // concurrent calls; 0 = unlimited
	Think          stream.Think
	SessionHeader  string // "" = none
	HeadersTimeout time.Duration
	RequestTimeout time.Duration
}

// Link is a channel in the chain of a model, with the request patch that belongs to this pair: provider, upstream and model layer, in
// this order.
type Link struct {
	Channel *Channel
	Patch   *openai.Patch
}

// Chain is what serves one catalogue model, in order of priority. Make it with NewChain.
type Chain struct {
	Model string
	Links []Link

	candidates []slot.Candidate
}

// NewChain makes the chain of a model.
func NewChain(model string, links []Link) *Chain {
	c := &Chain{Model: model, Links: links}
	for _, l := range links {
		c.candidates = append(c.candidates, slot.Candidate{ID: l.Channel.ID, Limit: l.Channel.Limit})
	}
	return c
}

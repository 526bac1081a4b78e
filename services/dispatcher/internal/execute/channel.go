// Package execute answers a request with the help of upstreams: it walks the chain of channels, calls one after the other until an answer
// is committed, and reports what happened.
package execute

import (
	"net/http"
	"time"

	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/queue"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/config"
	"hydrallm/shared/openai"
)

// Channel is a place to call: an upstream of the configuration, or a provider with its keys as automatic routing uses it. It is built once and
// never changed.
type Channel struct {
	ID             string // of the upstream or the provider
	Circuit        string // name of its breaker, among all channels
	Provider       string
	Agent          string // name of the local agent that it is, in upper case; "" for a cloud provider or an upstream
	Vendor         string // known vendor or dialect whose habits matter for errors, or ""
	URL            string // base URL of the provider
	Dialect        dialect.Dialect
	Passes         bool          // the provider has the routes of OpenAI's API, or may have them
	Key            string        // the one key of the channel; "" = no credentials
	Pool           *keypool.Pool // the keys of its provider, when that has a pool; nil otherwise
	Header         http.Header   // static request headers
	Limit          int           // of calls at the same time to one model, under whatever name; 0 = unlimited
	Think          stream.Think
	SessionHeader  string // "" = none
	HeadersTimeout time.Duration
	RequestTimeout time.Duration
}

// Link is a channel in a chain, with the model to ask it for and the changes of the request that belong to this pair: those of provider, upstream
// and model, in this order.
type Link struct {
	Channel  *Channel
	Model    string        // the channel's own name of the model
	Defaults *openai.Patch // what the client may set itself
	Patch    *openai.Patch
	Plain    *openai.Patch // Patch without what the gateway asks for by itself; nil when that is nothing
	Price    *config.Price // nil = not known

	Premium    bool // the model wants a premium key
	Large      bool // serves requests that are too large for others (C-26)
	NoImages   bool // it is known to take no images: they are replaced by a text (C-25)
	NoEffort   bool // it is known not to think: reasoning_effort is left out
	NoThought  bool // it refuses to be told what was thought before
	Counted    bool // another name of the model has a limit, for which the calls of this one count
	LastResort bool // the last resort: it has no breaker, and may be called when the hop budget is used up
}

// want says which keys of the channel's pool will do.
func (l *Link) want() keypool.Want {
	if l.Premium {
		return keypool.PremiumKey
	}
	return keypool.AnyKey
}

// SlotID names what the calls of a model are counted under, whoever asks for it by whatever name.
func SlotID(provider, model string) string { return provider + "/" + model }

func (l *Link) candidate() slot.Candidate {
	return slot.Candidate{ID: SlotID(l.Channel.Provider, l.Model), Limit: l.Channel.Limit, Counts: l.Counted}
}

// name is how log lines call the channel: an upstream by its id, a provider with the model that it is asked for.
func (l *Link) name() string {
	if l.Channel.ID == l.Channel.Provider {
		return SlotID(l.Channel.Provider, l.Model)
	}
	return l.Channel.ID
}

// Chain is what may serve a request, in order of priority. Make it with NewChain.
type Chain struct {
	Links []Link
	Queue queue.Limits // where requests wait while all links are full; zero = nowhere

	candidates []slot.Candidate
}

// NewChain makes a chain.
func NewChain(links []Link) *Chain {
	c := &Chain{Links: links, candidates: make([]slot.Candidate, len(links))}
	for i := range links {
		c.candidates[i] = links[i].candidate()
	}
	return c
}

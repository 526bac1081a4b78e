package httpapi

import (
	"bytes"
	"strconv"
	"time"

	"hydrallm/services/ingress/internal/clientkey"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
)

// admit lets a request in as far as the limits of its key go. A question for a number of tokens uses none.
func (x *exchange) admit(req *contract.Request) *fault.Fault {
	if x.key == nil {
		return nil
	}
	tokens := req.Traits.Tokens
	if req.Operation == contract.CountTokens {
		tokens = 0
	}
	var f *fault.Fault
	x.pass, f = x.api.Gate.Admit(x.api.Queries(), x.key, tokens)
	x.showLimits()
	return f
}

// settled takes in what a request used that was let in, however it ended.
func (a *API) settled(p *clientkey.Pass, end contract.End) {
	if p != nil {
		p.Settle(end)
		a.Metrics.clients.used(p.Name(), end)
	}
}

// limited says whether the answer tells of the limits of the caller's key, and not of those of an upstream.
func (x *exchange) limited() bool { return x.key != nil && x.key.Limits != (clientkey.Limits{}) }

// showLimits tells a client how the limits of its key stand, in the headers of OpenAI, and those of Anthropic where its protocol is spoken.
func (x *exchange) showLimits() {
	if !x.limited() {
		return
	}
	now := x.api.Gate.Now()
	s := x.api.Gate.State(x.key, now)
	x.showRate("requests", s.Requests, now)
	x.showRate("tokens", s.Tokens, now)
}

func (x *exchange) showRate(what string, r clientkey.Rate, now time.Time) {
	if r.Limit == 0 {
		return
	}
	h := &x.Response.Header
	limit, remaining := strconv.FormatInt(r.Limit, 10), strconv.FormatInt(r.Remaining, 10)
	h.Set("X-Ratelimit-Limit-"+what, limit)
	h.Set("X-Ratelimit-Remaining-"+what, remaining)
	h.Set("X-Ratelimit-Reset-"+what, r.Reset.Round(time.Millisecond).String())
	if x.surface == contract.SurfaceMessages {
		h.Set("Anthropic-Ratelimit-"+what+"-Limit", limit)
		h.Set("Anthropic-Ratelimit-"+what+"-Remaining", remaining)
		h.Set("Anthropic-Ratelimit-"+what+"-Reset", now.Add(r.Reset).UTC().Format(time.RFC3339))
	}
}

// isRateLimit says whether a header tells how the limits of an upstream stand.
func isRateLimit(name []byte) bool {
	return bytes.HasPrefix(name, []byte("X-Ratelimit-")) || bytes.HasPrefix(name, []byte("Anthropic-Ratelimit-"))
}

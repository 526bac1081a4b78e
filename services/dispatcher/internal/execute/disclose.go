package execute

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// localAgent is what answers of local agents name as their provider.
const localAgent = "LOCAL-AGENT"

func (a *attempt) shownProvider() string {
	if a.link.Channel.Agent != "" {
		return localAgent
	}
	return a.link.Channel.Provider
}

// shownModel is the model as answers name it: that of an agent with the path that leads to it.
func (a *attempt) shownModel() string {
	if agent := a.link.Channel.Agent; agent != "" {
		return localAgent + "/" + agent + "/" + a.link.Model
	}
	return a.link.Model
}

// routed says that the client does not know who answers.
func (a *attempt) routed() bool { return !a.run.job.Request.Decision.Configured }

// reason is why this channel answers. It is that of the decision unless another one than decided does: another provider, be it that the
// decided one is not even in the chain, or another upstream than the first of a configured model.
func (a *attempt) reason() string {
	d := a.run.job.Request.Decision
	decided := a.link.Channel.Provider == cmp.Or(d.Provider, d.Agent)
	if d.Configured {
		decided = a.link.Channel == a.run.links[0].Channel
	}
	switch {
	case decided:
		return d.Reason
	case a.run.history.limited():
		return contract.ReasonRateLimit
	}
	return contract.ReasonKeyAvailability
}

// autoModel is the name of automatic routing, for clients that gave none.
const autoModel = "auto"

// options say how an answer to this request is repaired.
func (a *attempt) options(o *chat) stream.Options {
	return stream.Options{
		Think: a.link.Channel.Think, Choices: o.choices(), Uniform: a.routed() || a.run.job.Request.Surface != contract.SurfaceChat,
	}
}

// disclosure tells the client of a routed request who really answered: the model echoes what it sent, the usage has the facts (R-033, C-07).
func (a *attempt) disclosure() (d surface.Disclosure) {
	if a.run.inSession() {
		d.Session = a.run.job.Request.SessionID
	}
	web := a.run.job.Request.WebParts
	if !a.routed() {
		d.Parts = web // a transparent answer has them when the web was asked
		return d
	}
	index := 0
	if a.held.key != nil {
		index = a.held.key.Index
	}
	d.Model = cmp.Or(a.run.job.Request.Model, autoModel)
	d.Usage = []surface.Member{
		{Name: "gateway_provider", Value: rawjson.AppendString(nil, a.shownProvider())},
		{Name: "gateway_key_index", Value: strconv.AppendInt(nil, int64(index), 10)},
		{Name: "gateway_model", Value: rawjson.AppendString(nil, a.shownModel())},
		{Name: "routing_reason", Value: rawjson.AppendString(nil, contract.ShowReason(a.reason()))},
	}
	if a.omitted > 0 {
		d.Usage = append(d.Usage, surface.Member{Name: "gateway_warning", Value: rawjson.AppendString(nil, omittedWarning)})
	}
	d.Parts, d.Sources = a.appendRetryParts(web), web
	return d
}

// omittedWarning goes with an answer to a request whose images were left out (C-25).
const omittedWarning = "the images were left out, because the model that answered takes none"

// appendRetryParts gives an array of parts, which may be nil, with the failed attempts before this one. The array is only read.
func (a *attempt) appendRetryParts(parts []byte) []byte {
	tried := a.run.record.Attempts
	if len(tried) == 0 {
		return parts
	}
	parts = bytes.TrimSuffix(slices.Clone(parts), []byte("]"))
	for i, failed := range tried {
		next := a.link.Channel.Provider
		if i+1 < len(tried) {
			next = tried[i+1].Provider
		}
		if parts == nil {
			parts = append(parts, '[')
		} else {
			parts = append(parts, ',')
		}
		parts = strconv.AppendInt(append(parts, `{"type":"retry","data":{"attempt":`...), int64(i+1), 10)
		parts = rawjson.AppendString(append(parts, `,"provider":`...), failed.Provider)
		parts = rawjson.AppendString(append(parts, `,"error":`...), failed.Reason)
		parts = strconv.AppendInt(append(parts, `,"error_code":`...), int64(failed.Status), 10)
		parts = rawjson.AppendString(append(parts, `,"fallback_to":`...), next)
		parts = append(parts, "}}"...)
	}
	return append(parts, ']')
}

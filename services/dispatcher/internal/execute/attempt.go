package execute

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Bounds of what is read of an answer.
const (
	maxErrorBody = 256 << 10
	maxJSONBody  = 64 << 20
	drainLimit   = 100 * time.Millisecond
)

// attempt is one upstream call of a run.
type attempt struct {
	run     *run
	link    *link
	held    reservation
	started time.Time
	usage   stream.Usage
	entry   contract.Attempt // of the ledger
	status  int              // HTTP status of the upstream
	omitted int              // images that were left out of the request
	body    []byte           // of the request before the dialect
	thought bool             // it holds what was thought before, in the gateway's words
	native  bool             // what the upstream says is in the client's protocol
	settled bool             // slot, permit and key were given back
	sent    sent
	kept    bool     // the call is in the communication log
	ends    []string // finish reasons, of such a call
}

// sent is how much of an answer the client has.
type sent uint8

const (
	nothing sent = iota
	begun        // at least the status line; nothing may be taken back any more
	partly       // it will have no more, not even an end
	broken       // it will have no more, and is to see that
)

// settle gives slot and permit back, exactly once. It comes before the last bytes reach the client, so that a client that goes on
// at once finds the slot free.
func (a *attempt) settle(v classify.Verdict) {
	if a.settled {
		return
	}
	a.settled = true
	a.held.slot.Release()
	a.run.exec.freed()
	if a.held.key != nil {
		a.held.key.Report(v)
	}
	switch {
	case v.Class == classify.Success:
		a.held.permit.Success()
	case v.Breaker:
		a.held.permit.Failure(a.brake(v))
	default:
		a.held.permit.Release()
	}
}

// lighten takes out of the link what the upstream refuses although the client did not ask for it, or not this model: what the gateway adds to
// streams by itself, and, where the gateway chose the model, how much it shall think. It is false when that is not what was refused.
func (a *attempt) lighten(v classify.Verdict) bool {
	l, plan := a.link, a.run.exec.Planner
	switch {
	case l.Plain != nil && v.Names("stream_options", "include_usage"):
		l.Patch, l.Plain = l.Plain, nil
		plan.Refuses(l.Channel.Provider)
	case !l.NoEffort && (!a.run.pinned() || a.foreign()) && v.Names("reasoning_effort", "reasoning effort", "thinking") &&
		rawjson.Get(a.body, "reasoning_effort") != nil:
		l.NoEffort = true
		plan.Lacks(l.Channel.Provider, l.Model, contract.FeatureThinking)
	case a.thought && !l.NoThought && v.Names("reasoning_content"):
		l.NoThought = true
	default:
		return false
	}
	return true
}

// foreign says that the client speaks another protocol than the hub's, so that it does not choose the words in which its request goes on.
func (a *attempt) foreign() bool { return a.run.job.Request.Surface != contract.SurfaceChat }

// brake is how long the upstream states that it takes no calls, if that is all that its failure says: it then opens a circuit for no longer
//
func (a *attempt) brake(v classify.Verdict) time.Duration {
	limit := v.Class == classify.Rate || v.Class == classify.Quota || a.status == http.StatusTooManyRequests
	if v.Unreached || limit && v.Stated {
		return v.Wait
	}
	return 0
}

// exchange makes the call and passes a good answer on.
func (a *attempt) exchange(ctx context.Context) classify.Verdict {
	a.run.passed, a.run.details = nil, nil
	resp, err := a.run.op.send(ctx, a.link, a.build(ctx))
	if bad, ok := errors.AsType[*openai.RequestError](err); ok {
		return untranslatable(bad)
	}
	if err != nil {
		return a.cutOff(ctx, ctx, err)
	}
	a.entry.Headers = kept(resp.Header, a.run.exec.Secrets.Replace)
	if len(a.run.links) == 1 {
		a.run.passed = passed(a.entry.Headers)
	}
	if a.status = resp.Status; resp.Status/100 != 2 {
		defer resp.Close()
		a.native = resp.Native != ""
		return a.judge(ctx, resp.Response)
	}
	return a.run.op.pass(ctx, a, resp)
}

// untranslatable is the verdict on a request that can't be put into the dialect of the channel. No call was made; another channel may take it.
func untranslatable(bad *openai.RequestError) classify.Verdict {
	return classify.Verdict{
		Class: classify.Untranslatable, Reason: "not translatable", Status: http.StatusBadRequest, Message: bad.Message,
		Type: "invalid_request_error", Code: bad.Code, Param: bad.Param,
	}
}

// never is the verdict on an answer that can't be passed on: if its text reports no error, it is no answer.
func never(v classify.Verdict) classify.Verdict {
	if v.Class == classify.Success {
		return classify.Ended(classify.ErrEmptyAnswer)
	}
	return v
}

// cutOff classifies a call that ended without a whole answer. What ended the request shows in ctx, what ended the call in callCtx.
func (a *attempt) cutOff(ctx, callCtx context.Context, err error) classify.Verdict {
	switch {
	case ctx.Err() == nil:
		return classify.Transport(callCtx, err)
	case errors.Is(context.Cause(ctx), classify.ErrClientGone):
		return classify.Transport(ctx, err)
	default: // the process is stopping or the whole request took too long: nobody's failure either
		return classify.Verdict{Class: classify.Cancelled, Reason: "stopped"}
	}
}

// maxDetails bounds what is passed on of an error beside its message, in bytes.
const maxDetails = 4 << 10

// detailsOf gives the details of an error of a provider that speaks the client's protocol: SDKs act on them.
func detailsOf(body []byte, secrets Secrets) []byte {
	if !rawjson.Valid(body) {
		return nil
	}
	details := []byte(secrets.Replace(string(rawjson.Get(rawjson.Get(body, "error"), "details"))))
	if len(details) == 0 || len(details) > maxDetails || details[0] != '{' || !rawjson.Valid(details) {
		return nil
	}
	return details
}

// judge classifies an answer by its body, which is not passed on.
func (a *attempt) judge(ctx context.Context, resp *upstream.Response) classify.Verdict {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // one that breaks off is judged by what came
	if ctx.Err() != nil {
		return a.cutOff(ctx, ctx, nil)
	}
	if a.native {
		a.run.details = detailsOf(body, a.run.exec.Secrets)
	}
	return classify.Of(a.answerOf(resp, body))
}

func (a *attempt) answerOf(resp *upstream.Response, body []byte) classify.Answer {
	return classify.Answer{Provider: a.link.Channel.Vendor, Status: resp.Status, Header: resp.Header, Body: body}
}

// build prepares the request for the link, from the client's body each time.
func (a *attempt) build(ctx context.Context) upstream.Call {
	c := a.link.Channel
	body := a.run.op.appendUpstream(nil, a.link, openai.Rewrite{Model: a.link.Model, Defaults: a.link.Defaults, Patch: a.link.Patch, Front: a.run.front})
	if a.link.NoImages {
		body, a.omitted = compat.WithoutImages(body)
	}
	if a.link.NoEffort {
		body = rawjson.AppendDelete(nil, body, "reasoning_effort")
	}
	a.body = body
	if a.foreign() {
		if a.link.NoThought || !a.routed() && compat.RefusesThoughts(c.Vendor) { // for routed requests the dialect knows
			body, _ = compat.WithoutThoughts(body)
		} else {
			a.thought = compat.HasThoughts(body)
		}
	}
	header := c.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	content, accept := a.run.op.media()
	header.Set("Content-Type", content)
	header.Set("Accept", accept)
	key := c.Key
	if a.held.key != nil {
		key = a.held.key.Key
	}
	if name := c.SessionHeader; name != "" {
		header.Del(name)
		if id, ok := a.run.exec.Dialogues.ID(ctx, rawjson.Get(body, "messages")); ok {
			header.Set(name, id)
		}
	}
	return upstream.Call{
		URL: c.URL, Key: key, Header: header, Body: body, Stream: a.run.op.streams(), HeadersTimeout: a.headersTimeout(),
		RequestTimeout: c.RequestTimeout,
	}
}

// headersTimeout is how long the upstream may take to say anything. A provider that hangs does not hold up a stream that another one could give
// of whole answers nothing is said before they are done, so that they have the time of the channel.
func (a *attempt) headersTimeout() time.Duration {
	c, limit := a.link.Channel, a.run.exec.Limits.RoutedHeaders
	if limit <= 0 || !a.run.op.streams() || a.run.job.Request.Decision.Configured || c.Agent != "" || !a.run.alternative(a.link) {
		return c.HeadersTimeout
	}
	return min(limit, c.HeadersTimeout)
}

// head gives the status line and headers that disclose who answered.
func (a *attempt) head(contentType string) contract.Head {
	head := contract.Head{Status: http.StatusOK, Header: append([][2]string{
		{"Content-Type", contentType},
		{"X-Gateway-Provider", a.shownProvider()},
		{"X-Gateway-Upstream", a.link.Channel.ID},
		{"X-Gateway-Model", a.shownModel()},
		{"X-Gateway-Attempts", strconv.Itoa(len(a.run.record.Attempts) + 1)},
		{"X-Routing-Reason", contract.ShowReason(a.reason())},
	}, a.run.passed...)}
	if a.omitted > 0 {
		head.Header = append(head.Header, [2]string{"X-Gateway-Warning", omittedWarning})
	}
	head.Header = a.run.withSession(head.Header)
	return head
}

// begin notes that the client has a status line from here on.
func (a *attempt) begin() {
	a.sent = begun
	a.run.record.FirstTokenMS = time.Since(a.run.job.Request.ReceivedAt).Milliseconds()
}

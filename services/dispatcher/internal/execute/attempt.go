package execute

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Outcomes of an attempt, the closed set of label values of its metric.
const (
	attemptSuccess   = "success"
	attemptFailed    = "failed"
	attemptCancelled = "cancelled"
	attemptLost      = "lost"
)

// Bounds of what is read of an answer.
const (
	maxErrorBody = 256 << 10
	maxJSONBody  = 64 << 20
	drainLimit   = 100 * time.Millisecond
)

// attempt is one upstream call of a run.
type attempt struct {
	*run
	reservation
	started  time.Time
	status   int  // HTTP status of the upstream
	omitted  int  // images that were left out of the request
	released bool // slot and permit are settled
	answered bool // the client has at least the status line
}

// call makes one upstream call and tells what to do next. With classify.Done the client has its answer.
func (r *run) call(ctx context.Context, c reservation) (classify.Step, error) {
	a := &attempt{run: r, reservation: c, started: time.Now()}
	defer a.settle(classify.Verdict{Class: classify.Cancelled}) // after a panic; otherwise it is settled already
	r.logAccepted(ctx, a)
	verdict := a.exchange(ctx)
	verdict.Reason = r.Secrets.Replace(verdict.Reason) // it may hold a code of the upstream's, which may be the key that it was sent
	a.settle(verdict)
	a.record(ctx, verdict)
	r.last = verdict
	if verdict.Class == classify.Untranslatable { // no call was made
		delete(r.begun, c.Channel)
	}
	switch {
	case a.answered:
		return classify.Done, nil
	case verdict.Class == classify.Cancelled:
		return classify.Stop, errStopped
	}
	step := r.next(c, verdict)
	if step == classify.RetryOnce && r.badOutput {
		if step = classify.Final; a.status/100 == 2 { // what came says nothing that the client could make use of
			step = classify.NextChannel
		}
	}
	if step == classify.Final {
		return step, r.passThrough(verdict)
	}
	r.badOutput = r.badOutput || step == classify.RetryOnce
	if !r.otherModel(c, verdict) && !r.again(c, step) {
		r.tried[c.Channel] = true
	}
	r.failed[c.Channel] = failure{verdict, a.status}
	r.classes = append(r.classes, verdict.Class)
	return step, nil
}

// next decides what follows from a verdict. What the client asked for by name is not replaced; what the gateway chose is (R-100, C-09, C-43).
func (r *run) next(c reservation, v classify.Verdict) classify.Step {
	d := r.job.Request.Decision
	r.limited = r.limited || v.Class == classify.Rate || v.Class == classify.Quota
	r.largeBad = r.largeBad || c.Large && v.Class != classify.Size && v.Class != classify.Untranslatable
	switch {
	case d.Configured || d.PinModel:
		return v.Next(true)
	case v.Class == classify.Model:
		r.Planner.Absent(c.Channel.Provider, c.Model)
	case d.PinProvider:
		return v.Next(true)
	case v.Class == classify.Size && (c.Large || r.tooLarge):
		return classify.Final
	case v.Class == classify.Size:
		r.tooLarge = true
	}
	return v.Next(false)
}

// otherModel lets a channel go on with another of its models when the gateway has chosen this one, and what failed is this model alone: no key of
// the channel may use it any more, or it is missing, and then the other providers come first (C-43). A provider that is down gets no
// further calls this way.
func (r *run) otherModel(c reservation, v classify.Verdict) bool {
	d := r.job.Request.Decision
	if d.Configured || d.PinModel || r.begun[c.Channel] >= r.Limits.MaxRetries {
		return false
	}
	if v.Class != classify.Model {
		limited := v.PerModel && (v.Class == classify.Rate || v.Class == classify.Quota || v.Class == classify.Forbidden)
		if !limited || c.Channel.Pool == nil || c.Channel.Pool.Usable(c.Model, c.want(), r.usedKey(c.Channel.Pool)) {
			return false
		}
	}
	planned, err := r.Planner.Plan(d, r.job.Request.Stream)
	if err != nil {
		return false
	}
	links := r.chain.Links
	at := slices.IndexFunc(links, func(l Link) bool { return l.Channel == c.Channel })
	other := slices.IndexFunc(planned.Links, func(l Link) bool { return l.Channel == c.Channel && l.Model != c.Model })
	if at < 0 || other < 0 {
		return false
	}
	link := planned.Links[other]
	if v.Class == classify.Model {
		links = slices.Delete(slices.Clone(links), at, at+1)
		if at = slices.IndexFunc(links, func(l Link) bool { return l.LastResort }); at < 0 || link.LastResort {
			at = len(links)
		}
		r.chain = NewChain(slices.Insert(links, at, link))
	} else {
		links[at] = link
	}
	delete(r.keys, c.Channel.Pool)
	return true
}

// passThrough is the error of a request that is at fault itself: status and message are the upstream's.
func (r *run) passThrough(v classify.Verdict) error {
	return &fault.Fault{
		Kind: fault.Refused, HTTPStatus: v.Status, Message: r.Secrets.Replace(v.Message),
		ErrorType: r.Secrets.Replace(v.Type), Code: r.Secrets.Replace(v.Code), Param: r.Secrets.Replace(v.Param),
	}
}

// settle gives slot and permit back, exactly once. It comes before the last bytes reach the client, so that a client that goes on
// at once finds the slot free.
func (a *attempt) settle(v classify.Verdict) {
	if a.released {
		return
	}
	a.released = true
	a.lease.Release()
	if a.key != nil {
		a.key.Report(v)
	}
	switch {
	case v.Class == classify.Success:
		a.permit.Success()
	case v.Breaker:
		a.permit.Failure(a.brake(v))
	default:
		a.permit.Release()
	}
}

// brake is how long the upstream states that it takes no calls, if that is all that its failure says: it then opens a circuit for no longer
//
func (a *attempt) brake(v classify.Verdict) time.Duration {
	if limit := v.Class == classify.Rate || v.Class == classify.Quota || a.status == http.StatusTooManyRequests; limit && v.Stated {
		return v.Wait
	}
	return 0
}

// record adds the call to the ledger.
func (a *attempt) record(ctx context.Context, v classify.Verdict) {
	outcome := attemptFailed
	if v.Class == classify.Success {
		outcome = attemptSuccess
	} else if !v.Failed() {
		outcome = attemptCancelled
	}
	a.usage.Attempts = append(a.usage.Attempts, contract.Attempt{
		Upstream: a.Channel.ID, Provider: a.Channel.Provider, Outcome: outcome, Reason: v.Reason, Status: a.status,
		DurationMS: time.Since(a.started).Milliseconds(),
	})
	a.usage.Provider, a.usage.Upstream, a.usage.UpstreamModel = a.Channel.Provider, a.Channel.ID, a.Model
	a.usage.RoutingReason = a.reason()
	if a.key != nil {
		a.usage.KeyIndex = a.key.Index
	}
	a.usage.Status = usageStatus(v)
	a.Metrics.attempt(a.Channel, v, time.Since(a.started))
	a.logEnd(ctx, v)
}

func usageStatus(v classify.Verdict) string {
	if v.Failed() {
		return "error: " + v.Class.Category()
	}
	if v.Class == classify.Success {
		return statusSuccess
	}
	return statusCancelled
}

// exchange makes the call and passes a good answer on.
func (a *attempt) exchange(ctx context.Context) classify.Verdict {
	resp, err := a.send(ctx)
	if bad, ok := errors.AsType[*openai.RequestError](err); ok {
		return a.untranslatable(bad)
	}
	if err != nil {
		return a.cutOff(ctx, ctx, err)
	}
	a.status = resp.Status
	if resp.Status/100 != 2 {
		defer resp.Close()
		return a.judge(ctx, resp, resp.Body)
	}
	body, kind, err := sniff(resp)
	switch {
	case a.req.embed != nil && err == nil:
		defer resp.Close()
		return a.passVectors(ctx, resp, body)
	case err != nil:
		defer resp.Close() // before it is closed, or the call would count as cancelled
		return a.cutOff(ctx, resp.Context(), err)
	case kind == bodyEvents:
		return a.passEvents(ctx, resp, body)
	case kind == bodyJSON:
		defer resp.Close()
		return a.passJSON(ctx, resp, body)
	default:
		defer resp.Close()
		return never(a.judge(ctx, resp, body))
	}
}

// send makes the call in the dialect of the channel.
func (a *attempt) send(ctx context.Context) (*upstream.Response, error) {
	call := a.build(ctx)
	if a.req.embed == nil {
		return a.Channel.Dialect.Chat(ctx, call)
	}
	resp, err := a.Channel.Dialect.Embed(ctx, call)
	if errors.Is(err, dialect.ErrUnsupported) {
		return nil, &openai.RequestError{Message: "The provider " + quoted(a.Channel.Provider) + " offers no embeddings", Param: "model"}
	}
	return resp, err
}

// untranslatable is the verdict on a request that can't be put into the dialect of the channel. No call was made; another channel may take it.
func (a *attempt) untranslatable(bad *openai.RequestError) classify.Verdict {
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

// judge classifies an answer by its body, which is not passed on.
func (a *attempt) judge(ctx context.Context, resp *upstream.Response, r io.Reader) classify.Verdict {
	body, _ := io.ReadAll(io.LimitReader(r, maxErrorBody)) // one that breaks off is judged by what came
	if ctx.Err() != nil {
		return a.cutOff(ctx, ctx, nil)
	}
	return classify.Of(a.answerOf(resp, body))
}

func (a *attempt) answerOf(resp *upstream.Response, body []byte) classify.Answer {
	return classify.Answer{Provider: a.Channel.Vendor, Status: resp.Status, Header: resp.Header, Body: body}
}

// build prepares the request for the channel, from the client's body each time.
func (a *attempt) build(ctx context.Context) upstream.Call {
	body := a.req.appendUpstream(nil, openai.Rewrite{Model: a.Model, Patch: a.Patch})
	if a.NoImages {
		body, a.omitted = compat.WithoutImages(body)
	}
	header := a.Channel.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	if a.req.stream() {
		header.Set("Accept", "text/event-stream")
	} else {
		header.Set("Accept", "application/json")
	}
	key := a.Channel.Key
	if a.key != nil {
		key = a.key.Key
	}
	if name := a.Channel.SessionHeader; name != "" {
		header.Del(name)
		if id, ok := a.Dialogues.ID(ctx, rawjson.Get(body, "messages")); ok {
			header.Set(name, id)
		}
	}
	return upstream.Call{
		URL: a.Channel.URL, Key: key, Header: header, Body: body, Stream: a.req.stream(),
		HeadersTimeout: a.Channel.HeadersTimeout, RequestTimeout: a.Channel.RequestTimeout,
	}
}

// head gives the status line and headers that disclose who answered.
func (a *attempt) head(contentType string) contract.Head {
	return contract.Head{Status: http.StatusOK, Header: [][2]string{
		{"Content-Type", contentType},
		{"X-Gateway-Provider", a.shownProvider()},
		{"X-Gateway-Upstream", a.Channel.ID},
		{"X-Gateway-Model", a.shownModel()},
		{"X-Gateway-Attempts", strconv.Itoa(len(a.usage.Attempts) + 1)},
		{"X-Routing-Reason", contract.ShowReason(a.reason())},
	}}
}

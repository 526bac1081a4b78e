package execute

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/surface"
)

// finish closes the answer: with the end frame when the client has one, with an error when err says so.
func (r *run) finish(ctx context.Context, err error) Outcome {
	cause := context.Cause(ctx)
	r.record.LatencyMS = time.Since(r.job.Request.ReceivedAt).Milliseconds()
	r.record.At = time.Now().UTC()
	switch {
	case err == nil && r.sent == broken:
		r.report(ctx, r.end(contract.OutcomeBroken))
		return Outcome{Usage: r.record}
	case err == nil && r.sent == partly:
		// Without an end the ingress gives the answer up, in sight of the client; with one it would pass for a whole answer.
		return Outcome{Usage: r.record}
	case err == nil:
		outcome := contract.OutcomeSuccess
		if r.record.Status != statusSuccess {
			outcome = contract.OutcomeError
		}
		r.report(ctx, r.end(outcome))
		return Outcome{Usage: r.record}
	case errors.Is(cause, classify.ErrClientGone):
		r.record.Status = statusCancelled
		return Outcome{Usage: r.record}
	case errors.Is(err, errStopped) && !errors.Is(cause, classify.ErrTotalTimeout):
		r.record.Status = "" // it is not over
		return Outcome{Usage: r.record, HandBack: true}
	case errors.Is(err, errStopped):
		err = &fault.Fault{Kind: fault.Failed, Message: "all upstreams failed (the limit for the whole request is reached)"}
	}
	f := fault.From(err)
	if r.record.Status == "" || f.Kind == fault.Busy {
		r.record.Status = "error: " + faultCategory(f)
	}
	r.report(ctx, r.refuse(ctx, f))
	return Outcome{Usage: r.record}
}

// Values of Usage.Status; errors are "error: CATEGORY".
const (
	statusSuccess   = "success"
	statusCancelled = "cancelled"
)

// faultCategory names a refusal that no upstream call explains.
func faultCategory(f *fault.Fault) string {
	switch f.Kind { //nolint:exhaustive // the executor makes no others
	case fault.ModelNotFound:
		return "MODEL_NOT_FOUND"
	case fault.Invalid:
		return "VALIDATION_ERROR"
	case fault.Internal:
		return "INTERNAL_ERROR"
	case fault.UpstreamAuth, fault.PremiumKey:
		return "AUTH_FAILURE"
	}
	return "SERVICE_UNAVAILABLE"
}

func (r *run) end(outcome string) error {
	u := &r.record
	end := contract.End{Outcome: outcome, Prompt: u.Prompt, Completion: u.Completion, Total: u.Total}
	for i := range u.Attempts {
		if cost := u.Attempts[i].CostNanos; cost != nil {
			end.CostNanos += *cost
		}
	}
	if err := r.sink.End(end); err != nil {
		return err
	}
	return r.sink.Flush()
}

// refuse answers with an error. Nothing is committed at this point, so that the status is real (FO-12).
func (r *run) refuse(ctx context.Context, f *fault.Fault) error {
	head := f.Head()
	if n := len(r.record.Attempts); n > 0 {
		head.Header = append(head.Header, [2]string{"X-Gateway-Attempts", strconv.Itoa(n)})
	}
	head.Header = withPassed(r.withSession(head.Header), r.passed)
	if err := errors.Join(r.sink.Head(head), r.sink.Data(context.WithoutCancel(ctx), surface.ErrorsOf(r.job.Request.Surface).AppendBody(nil, f, r.job.Request.ID))); err != nil {
		return err
	}
	if f.Status() >= http.StatusInternalServerError && f.Cause != nil {
		r.exec.Log.ErrorContext(ctx, "request failed", slog.Any("error", f))
	}
	return r.end(contract.OutcomeError)
}

// report notes that the pipeline did not take an answer.
func (r *run) report(ctx context.Context, err error) {
	if err != nil {
		r.exec.Log.WarnContext(ctx, "sending the answer", slog.Any("error", err))
	}
}

// quoted shows a name that a client sent, bounded.
func quoted(name string) string {
	const most = 200
	runes := []rune(name)
	if len(runes) > most {
		name = string(runes[:most]) + "..."
	}
	return fmt.Sprintf("`%s`", name)
}

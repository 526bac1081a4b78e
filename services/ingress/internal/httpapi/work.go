package httpapi

import (
	"context"
	"errors"
	"time"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/services/ingress/internal/upload"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

const (
	retryAfter = time.Second // after which it makes sense to come back
	maxURL     = 4096        // bytes of web_fetch, which travels in message headers
)

// work hands a request to the pipeline and gives back its answer.
func (a *API) work(x *exchange, op *operation) (err error) {
	key, bad := x.idempotencyKey(op)
	if bad != nil {
		return bad
	}
	body, err := upload.Read(x.RequestCtx, a.MaxBody)
	if err != nil {
		return err
	}
	a.Metrics.received.Add(float64(len(body)))
	req, err := a.envelope(x, op, body)
	if err != nil {
		upload.Release(body)
		return err
	}
	req.Principal, x.model = x.principal, req.Model
	if f := x.admit(req); f != nil {
		upload.Release(body)
		return f
	}
	ctx, served := a.serve(x, op, req)
	streaming := false
	defer func() {
		if !streaming {
			served.end(statusOf(x, err))
		}
	}()
	if req.Background || key != "" {
		if key != "" {
			streaming, err = a.once(ctx, x, req, body, op.scope(x.principal, key), served)
		} else {
			streaming, err = a.background(ctx, x, req, body, served)
		}
		if err != nil {
			a.settled(x.pass, notMade)
		}
		return err
	}
	pend := a.Pending.Add(x.rid, x.client(), req.StartBy)
	if req.Stream && a.PingAfter > 0 {
		pend.PingFrom(req.ReceivedAt.Add(a.PingAfter))
	}
	defer func() {
		if !streaming {
			a.Pending.Remove(pend)
			a.settled(x.pass, pend.End())
		}
	}()
	if err = a.publish(ctx, pend, req, body); err != nil {
		a.settled(x.pass, notMade)
		return err
	}
	upload.Release(body)
	if req.Decision != nil {
		a.Decisions.Note(req)
	}
	streaming, err = a.answer(x, pend, req.ReceivedAt, served)
	return err
}

// notMade is the end of a request that the pipeline did not take.
var notMade = contract.End{Outcome: contract.OutcomeError}

// statusOf is the status of an answer that err, if any, is about to become.
func statusOf(x *exchange, err error) int {
	if err != nil {
		return fault.From(err).Status()
	}
	return x.Response.StatusCode()
}

// envelope checks the body and describes the request to the pipeline.
func (a *API) envelope(x *exchange, op *operation, body []byte) (*contract.Request, error) {
	req := &contract.Request{ID: x.rid, Ingress: a.Ingress, Operation: op.asks, Surface: op.surface, ContentType: x.contentType(op)}
	if err := op.scan(body, req); err != nil {
		if bad, ok := errors.AsType[*openai.RequestError](err); ok {
			return nil, &fault.Fault{Kind: fault.Invalid, Message: bad.Message, Param: bad.Param, Code: bad.Code}
		}
		return nil, err
	}
	switch {
	case len(req.Model) > contract.MaxName:
		return nil, tooLong("model")
	case len(req.ForkFrom) > contract.MaxName:
		return nil, tooLong("fork_from")
	case len(req.Web.Fetch) > maxURL:
		return nil, tooLong("web_fetch")
	}
	if f := x.mayAsk(req.Model); f != nil {
		return nil, f
	}
	if f := a.notConfigured(op, req.Model); f != nil {
		return nil, f
	}
	if err := x.session(req); err != nil {
		return nil, err
	}
	if err := x.priority(req); err != nil {
		return nil, err
	}
	req.Headers = x.forProvider()
	if err := a.stored(req); err != nil {
		return nil, err
	}
	req.ReceivedAt = time.Now() // the body may have taken its time
	req.QueueTimeout = a.QueueTimeout
	req.StartBy = req.ReceivedAt.Add(a.QueueTimeout)
	a.decide(req)
	return req, nil
}

func tooLong(param string) *fault.Fault {
	return &fault.Fault{Kind: fault.Invalid, Message: "'" + param + "' is too long.", Param: param, Code: openai.CodeInvalidValue}
}

// publish gives the request to the pipeline. While that takes none, as in a change of the leader of its stream, it waits until no worker may
// begin any more, or the request fails: its client has gone, or a worker has answered it before the stream has acknowledged it, and badly.
func (a *API) publish(ctx context.Context, pend *pending.Request, req *contract.Request, body []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pend.OnFailure(cancel)
	defer pend.OnFailure(nil)
	if err := a.Bus.PublishWork(ctx, req, body); err != nil && ctx.Err() == nil {
		return fullFault(err)
	}
	return nil // how it failed, if it did, is how its answer ends
}

// fullFault is what a client gets whose request the pipeline does not take.
func fullFault(cause error) *fault.Fault {
	return &fault.Fault{
		Kind: fault.Unavailable, Message: "The gateway takes no more requests at the moment", RetryAfter: retryAfter, Cause: cause,
	}
}

// client is the connection as the table of pending requests sees it.
func (x *exchange) client() pending.Client {
	if c := x.conn(); c != nil {
		return c
	}
	return present{}
}

// present stands for a connection that can't be watched.
type present struct{}

func (present) Gone() bool { return false }
func (present) Abort()     {}

// lostFault is what a client sees of an answer that failed inside the gateway.
func lostFault(err error) *fault.Fault {
	f := &fault.Fault{Kind: fault.Unavailable, RetryAfter: retryAfter, Code: "answer_lost", Cause: err, Message: "The answer was lost inside the gateway"}
	switch {
	case errors.Is(err, pending.ErrNotTaken):
		f.Code, f.Message = "queue_timeout", "The gateway is overloaded: no worker took the request in time"
	case errors.Is(err, pending.ErrDeadline):
		f.Code, f.Message = "request_deadline", "The request took longer than the gateway allows"
	case errors.Is(err, pending.ErrBroken):
		f.Kind, f.RetryAfter, f.Code, f.Message = fault.Internal, 0, "upstream_error", "The upstream failed while it was answering"
	case errors.Is(err, pending.ErrStopping):
		f.Code, f.Message = "stopping", "The gateway is stopping"
	}
	return f
}

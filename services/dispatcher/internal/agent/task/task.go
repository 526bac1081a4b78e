// Package task is a call of an agent while it runs: its limits of time, and the response in which it ends.
package task

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/upstream"
)

// Task is a running call. It must end in one of Answer, Stream and Fail.
type Task struct {
	ctx    context.Context //nolint:containedctx // the lifetime of the call, which ends with its response
	cancel context.CancelCauseFunc
	first  *time.Timer // until there is something to pass on
	total  *time.Timer
}

// Begin starts the clocks of a call, with the meaning that they have for upstream.Client: its HeadersTimeout is the time until Answer or
// Stream, its RequestTimeout that until the last byte.
//
// The context that it gives ends with the call.
func Begin(ctx context.Context, call upstream.Call) (context.Context, *Task) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &Task{
		ctx: ctx, cancel: cancel,
		first: time.AfterFunc(call.HeadersTimeout, func() { cancel(classify.ErrHeaderTimeout) }),
		total: time.AfterFunc(call.RequestTimeout, func() { cancel(classify.ErrTotalTimeout) }),
	}
}

// Answer gives the response of a call whose work is done.
func (t *Task) Answer(status int, contentType string, body []byte) *upstream.Response {
	t.total.Stop()
	return t.respond(status, contentType, io.NopCloser(bytes.NewReader(body)))
}

// Stream gives the response, without a body of its own, of a call that goes on while its answer is read. It ends when the response is closed,
// and end is called then.
func (t *Task) Stream(end func()) *upstream.Response {
	return t.respond(http.StatusOK, "text/event-stream", ending{http.NoBody, func() {
		t.total.Stop()
		end()
	}})
}

func (t *Task) respond(status int, contentType string, body io.ReadCloser) *upstream.Response {
	t.first.Stop()
	return upstream.NewResponse(t.ctx, t.cancel, status, http.Header{"Content-Type": {contentType}}, body)
}

// Fail ends the call and gives the reason: that for which its context ended, if it has, else err.
func (t *Task) Fail(err error) error {
	if cause := context.Cause(t.ctx); cause != nil {
		err = cause
	}
	t.first.Stop()
	t.total.Stop()
	t.cancel(nil)
	return err
}

// ending is a body that does something when it is closed.
type ending struct {
	io.Reader

	end func()
}

func (b ending) Close() error {
	b.end()
	return nil
}

// Unreachable says that a call failed because no connection came about.
func Unreachable(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

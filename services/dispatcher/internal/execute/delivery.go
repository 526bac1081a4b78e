package execute

import (
	"context"
	"errors"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
)

// closeGrace is how long a client may still take what is sent to it when the call, or the time for it, is over. So a client that reads slowly
// gets the answer, or the event at hand and the error that follows it.
const closeGrace = 3 * time.Second

// delivery gives the context for sending what a call brought. It ends with the call's context if the client has left, and else a closeGrace
// later. The cause is that of the call.
func delivery(call context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(call))
	unhook := context.AfterFunc(call, func() {
		if !errors.Is(context.Cause(call), classify.ErrClientGone) {
			late := time.NewTimer(closeGrace)
			defer late.Stop()
			select {
			case <-late.C:
			case <-ctx.Done():
			}
		}
		cancel(context.Cause(call))
	})
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// unwritten is for an answer that the client did not take to its end.
func (a *attempt) unwritten(ctx context.Context, err error) classify.Verdict {
	if errors.Is(context.Cause(ctx), classify.ErrClientGone) {
		return a.cutOff(ctx, ctx, err)
	}
	a.sent = partly
	return classify.Verdict{Class: classify.Cancelled, Reason: "client does not read"}
}

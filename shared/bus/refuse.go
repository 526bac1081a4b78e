package bus

import (
	"context"

	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/surface"
)

// Refuse answers the client with an error. It does not settle the work.
func (w *Work) Refuse(ctx context.Context, f *fault.Fault) error {
	reply := w.OpenReply()
	defer reply.Close()
	if err := reply.Head(f.Head()); err != nil {
		return err
	}
	if err := reply.Data(ctx, surface.ErrorsOf(w.Request.Surface).AppendBody(nil, f, w.Request.ID)); err != nil {
		return err
	}
	if err := reply.End(contract.End{Outcome: contract.OutcomeError}); err != nil {
		return err
	}
	return reply.Flush()
}

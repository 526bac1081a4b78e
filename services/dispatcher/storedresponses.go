package dispatcher

import (
	"context"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// storedResponses makes facts of responses that clients want to have stored.
type storedResponses struct{ bus *bus.Bus }

// KeepResponse returns when the fact is stored. One of the same response is the same fact.
func (s storedResponses) KeepResponse(ctx context.Context, r *contract.StoredResponse) error {
	data, err := r.Encode()
	if err != nil {
		return err
	}
	return s.bus.PublishFact(ctx, subject.Stored(r.ID), r.ID, data)
}

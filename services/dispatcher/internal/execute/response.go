package execute

import (
	"context"
	"errors"
	"log/slog"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/contract"
)

// Responses keeps responses that clients want to have stored; it returns when that is safe.
type Responses interface {
	KeepResponse(ctx context.Context, r *contract.StoredResponse) error
}

// storable is an answer that a client may want to have stored.
type storable interface {
	// Stored gives what is to be stored of an answer that has ended; nil for nothing.
	Stored() *contract.StoredResponse
}

// storedOf gives what is to be stored of an answer that has ended; nil for nothing.
func storedOf(a surface.Answer) *contract.StoredResponse {
	if s, ok := a.(storable); ok {
		return s.Stored()
	}
	return nil
}

// store makes a fact of a response, before its end reaches the client, so that whoever goes on from it at once finds it. A failure is only told. r may be nil.
func (a *attempt) store(ctx context.Context, r *contract.StoredResponse) {
	if r == nil || errors.Is(context.Cause(ctx), classify.ErrClientGone) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepLimit)
	defer cancel()
	if err := a.run.exec.Responses.KeepResponse(ctx, r); err != nil {
		a.run.exec.Log.WarnContext(ctx, "a response is not stored", slog.Any("error", err))
	}
}

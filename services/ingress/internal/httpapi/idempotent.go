package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"hydrallm/services/ingress/internal/upload"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

// Headers of requests that may be repeated, and of answers that are.
const (
	headerIdempotencyKey = "Idempotency-Key"
	headerReplayed       = "Idempotent-Replayed"

	maxIdempotencyKey = 255
)

// idempotencyKey gives the key of a request that asks for an answer of a model, "" for none.
func (x *exchange) idempotencyKey(op *operation) (string, *fault.Fault) {
	if op.asks != contract.Chat && op.asks != contract.Embeddings {
		return "", nil
	}
	switch given := x.Request.Header.PeekAll(headerIdempotencyKey); {
	case len(given) == 0:
		return "", nil
	case len(given) > 1:
		return "", badKey("is given more than once")
	case len(given[0]) == 0 || len(given[0]) > maxIdempotencyKey || slices.ContainsFunc(given[0], invisible):
		return "", badKey("must have 1 to 255 visible ASCII characters")
	default:
		return string(given[0]), nil
	}
}

func invisible(c byte) bool { return c <= ' ' || c > '~' }

func badKey(problem string) *fault.Fault {
	return &fault.Fault{Kind: fault.Invalid, Param: headerIdempotencyKey, Code: openai.CodeInvalidValue, Message: "The header " + headerIdempotencyKey + " " + problem}
}

// scope is what a key of a client is claimed under: it means something else for another client and another operation.
func (op *operation) scope(principal, key string) string {
	return digest([]byte(principal), []byte(op.path), []byte(key))
}

// asked is what a request asks for: its body, and the headers that count beside it.
func asked(req *contract.Request, body []byte) string {
	parts := [][]byte{body, []byte(req.SessionID)}
	for _, h := range req.Headers {
		parts = append(parts, []byte(h[0]), []byte(h[1]))
	}
	return digest(parts...)
}

// digest gives the SHA-256 of parts, of which none can pass for a piece of another.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// once answers a request that a client may repeat: the first one under its key is recorded, as one in the background is, and everybody gets its answer from
// the recording. The body is released.
func (a *API) once(ctx context.Context, x *exchange, req *contract.Request, body []byte, scope string, served *serving) (streaming bool, err error) {
	wanted := asked(req, body)
	t, err := a.task(req, body)
	if err != nil {
		return false, err
	}
	rec, begun, err := a.begin(ctx, scope, wanted, t)
	if err != nil {
		return false, err
	}
	upload.Release(t.body)
	if !begun {
		x.Response.Header.Set(headerReplayed, "true")
		served.unseen = true
		a.settled(x.pass, notMade)
		x.pass = nil // what the answer tells to have used is that of the first request
	}
	if len(rec.Note) > 0 {
		return a.showQueued(x, rec.Request.ID, rec.Note, t.streamed, served), nil
	}
	now := time.Now()
	startBy := now.Add(a.QueueTimeout * time.Duration(len(rec.Request.Slip)))                       // which stage it waits for is not known
	pend := a.Pending.Follow(a.Queries(), x.rid, x.client(), startBy, a.Bus.Replay(rec.Request.ID)) //nolint:contextcheck // a stream is read when this call is over
	defer func() {
		if !streaming {
			a.Pending.Remove(pend)
			a.settled(x.pass, pend.End())
		}
	}()
	if req.Stream && a.PingAfter > 0 {
		pend.PingFrom(now.Add(a.PingAfter))
	}
	if streaming, err = a.answer(x, pend, now, served); err != nil {
		x.Response.Header.Del(headerReplayed)
	}
	return streaming, err
}

// begin publishes a task, unless the answer to an earlier one stands for its own. It gives the recording of the one or the other.
func (a *API) begin(ctx context.Context, scope, wanted string, t *task) (rec *bus.Recording, begun bool, err error) {
	within, cancel := context.WithTimeout(ctx, a.QueueTimeout)
	defer cancel()
	if rec, err = a.claim(within, scope, wanted, t); err != nil {
		return nil, false, err
	}
	switch begun = rec.Request == t.req; {
	case begun:
		err = a.enqueue(within, t)
	case rec.State == bus.RecordingQueued: // whoever began it may have died before it was published; otherwise the server knows it
		if err = a.Bus.PublishWork(within, rec.Request, t.body); err != nil {
			err = fullFault(err)
		}
	}
	return rec, begun, err
}

// claim finds the recording that a key stands for, or makes one for a task. It is begun before the key stands for it, so that a claim without one is void.
func (a *API) claim(ctx context.Context, scope, wanted string, t *task) (*bus.Recording, error) {
	own := &bus.Recording{Request: t.req, Note: t.queued, State: bus.RecordingQueued}
	recorded, claimed := false, false
	defer func() {
		if recorded && !claimed {
			a.forget(ctx, t.req.ID)
		}
	}()
	for {
		last, err := a.Bus.Claimed(ctx, scope)
		if err != nil {
			return nil, fullFault(err)
		}
		if last.Request != "" && last.Digest != wanted {
			return nil, fault.New(fault.KeyReused, "The "+headerIdempotencyKey+" was used for another request. A key is for repetitions of one request, with the same body.")
		}
		if last.Request != "" {
			if rec, err := a.standing(ctx, last.Request); !errors.Is(err, bus.ErrNoRecording) {
				return rec, err
			}
		}
		if !recorded {
			if err := a.Bus.Record(ctx, t.req, t.queued); err != nil {
				return nil, fullFault(err)
			}
			recorded = true
		}
		err = a.Bus.Claim(ctx, scope, last, bus.Claim{Request: t.req.ID, Digest: wanted})
		switch {
		case errors.Is(err, bus.ErrSuperseded):
			continue // another one was faster
		case err != nil:
			return nil, fullFault(err)
		}
		claimed = true
		return own, nil
	}
}

// standing gives the recorded answer to a request if it is that of a repetition, too. The error is ErrNoRecording when that is to be run anew.
func (a *API) standing(ctx context.Context, rid string) (*bus.Recording, error) {
	rec, err := a.Bus.Recorded(ctx, rid)
	switch {
	case errors.Is(err, bus.ErrNoRecording):
		return nil, err
	case err != nil:
		return nil, fullFault(err)
	case rec.State != bus.RecordingEnded, len(rec.Note) > 0, rec.End.Outcome == contract.OutcomeSuccess:
		return rec, nil
	case rec.End.Outcome != contract.OutcomeError, rec.End.Reason != "": // it was lost
		return nil, bus.ErrNoRecording
	}
	switch status, err := a.recordedStatus(ctx, rec); {
	case err != nil:
		return nil, fullFault(err)
	case lasting(status):
		return rec, nil
	}
	return nil, bus.ErrNoRecording
}

// lasting says whether an error blames the request, which is the same the next time.
func lasting(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusFailedDependency, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}

var errSeen = errors.New("status was seen")

// recordedStatus gives the status of a recorded answer, 0 for one that has none.
func (a *API) recordedStatus(ctx context.Context, rec *bus.Recording) (status int, err error) {
	err = a.Bus.Play(ctx, rec, func(frames []byte) error {
		for f, err := range contract.Frames(frames) {
			if err != nil {
				return fmt.Errorf("reading a recorded answer: %w", err)
			}
			if f.Kind != contract.FrameHead {
				continue
			}
			head, err := contract.ParseHead(f.Payload)
			if err != nil {
				return fmt.Errorf("reading a recorded answer: %w", err)
			}
			status = head.Status
			return errSeen
		}
		return nil
	})
	if errors.Is(err, errSeen) {
		err = nil
	}
	return status, err
}

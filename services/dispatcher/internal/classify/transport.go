package classify

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// Causes that the caller sets on the context of an upstream call, or returns for a stream, so that the verdict can tell them apart.
var (
	ErrClientGone    = contract.ErrClientGone
	ErrHeaderTimeout = errors.New("no response headers within the limit")
	ErrTotalTimeout  = errors.New("no complete answer within the limit")
	ErrIdleTimeout   = errors.New("no further bytes within the limit")
	ErrEmptyAnswer   = errors.New("the upstream ended without an answer")
	ErrTruncated     = errors.New("the answer broke off")
	ErrTooLarge      = errors.New("the answer is larger than the limit")
)

// Transport gives the verdict on a call that ended without a usable answer: err is what the HTTP client or the reader of the body
// returned, ctx is the context of the call. The cause of ctx counts before err, because a cut connection shows up as all sorts of errors.
// A bare cancellation is the client's. Everything else is the upstream's fault and retryable.
func Transport(ctx context.Context, err error) Verdict {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, ErrClientGone) || errors.Is(err, context.Canceled) {
		v := of(Cancelled, "client gone")
		v.Status = statusClientClosed
		return v
	}
	v := of(Upstream, transportReason(err))
	v.Hung = errors.Is(err, ErrHeaderTimeout)
	if unreached(err) {
		v.Unreached, v.Cooldown, v.Wait = true, NoCooldown, blip
	}
	return v
}

// blip is how long a network that does not get anywhere is left alone: a laptop that wakes up has one again in a moment.
const blip = 5 * time.Second

// unreached says whether there was no connection on which the request could have been sent.
func unreached(err error) bool {
	if _, ok := errors.AsType[*net.DNSError](err); ok || isTLS(err) {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// Ended gives the verdict on an answer that is none although the call went well: it broke off, or there is nothing in it.
func Ended(err error) Verdict { return of(Upstream, transportReason(err)) }

func transportReason(err error) string {
	for _, known := range [...]struct {
		err    error
		reason string
	}{
		{ErrHeaderTimeout, "header timeout"},
		{ErrTotalTimeout, "total timeout"},
		{ErrIdleTimeout, "idle timeout"},
		{ErrEmptyAnswer, "empty answer"},
		{ErrTruncated, "truncated"},
		{ErrTooLarge, "too large"},
		{openai.ErrEventTooLarge, "too large"},
		{context.DeadlineExceeded, "timeout"},
		{syscall.ECONNREFUSED, "connection refused"},
		{syscall.ECONNRESET, "connection reset"},
		{syscall.ECONNABORTED, "connection reset"},
		{syscall.EPIPE, "connection reset"},
		{io.ErrUnexpectedEOF, "connection closed"},
		{io.EOF, "connection closed"},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "dns"
	}
	if isTLS(err) {
		return "tls"
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return "timeout"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "connect"
	}
	return "transport"
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	_, ok := errors.AsType[tls.AlertError](err)
	return ok
}

package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"

	"hydrallm/services/enricher/internal/guard"
)

// Kind says why a page could not be read.
type Kind string

// The kinds of failure.
const (
	Blocked   Kind = "blocked"   // the address, or one that it redirects to, may not be fetched
	Status    Kind = "status"    // an answer without a page
	Redirects Kind = "redirects" // too many redirects, a circle, or one to nowhere
	Type      Kind = "type"      // no text, or packed in a way that is not known
	TooLarge  Kind = "too large"
	Timeout   Kind = "timeout"
	Canceled  Kind = "canceled" // by the caller
	Network   Kind = "network"  // no connection, or one that broke
)

// Error is what Fetch returns. Its text may be shown to anybody: it names no host and no address. What is wrapped may not.
type Error struct {
	Kind   Kind
	Status int // of the answer, for Status
	cause  error
}

func (e *Error) Error() string {
	switch e.Kind {
	case Blocked:
		return guard.ErrBlocked.Error()
	case Status:
		return fmt.Sprintf("the server answered with status %d", e.Status)
	case Redirects:
		return "the address redirects without end"
	case Type:
		return "the content is no text"
	case TooLarge:
		return "the page is too large"
	case Timeout:
		return "the server did not answer in time"
	case Canceled:
		return "the fetch was canceled"
	default:
		return "the page could not be read from its server"
	}
}

// Unwrap gives the cause, which may name addresses; nil if there is none.
func (e *Error) Unwrap() error { return e.cause }

// Causes that end a fetch from within.
var (
	errTotal = errors.New("the time for one page is over")
	errIdle  = errors.New("nothing came for too long")
)

// classify makes an Error of what went wrong, once. ctx is that of the fetch, whose cause tells whose fault it was.
func classify(ctx context.Context, err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	cause := context.Cause(ctx)
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, guard.ErrBlocked):
		return &Error{Kind: Blocked, cause: err}
	case errors.Is(cause, errTotal), errors.Is(cause, errIdle), errors.Is(cause, context.DeadlineExceeded):
		return &Error{Kind: Timeout, cause: err}
	case cause != nil:
		return &Error{Kind: Canceled, cause: err}
	case isNet && timeout.Timeout():
		return &Error{Kind: Timeout, cause: err}
	default:
		return &Error{Kind: Network, cause: err}
	}
}

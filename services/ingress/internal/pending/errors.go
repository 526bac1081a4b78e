package pending

import "errors"

// Reasons why an answer does not come, or not to its end.
var (
	ErrNotTaken  = errors.New("no worker took the request in time")
	ErrDeadline  = errors.New("stages took longer than the request may take")
	ErrLost      = errors.New("worker of the request went silent")
	ErrDied      = errors.New("worker of the request died after the answer had begun")
	ErrBroken    = errors.New("the upstream broke off in the middle of the answer")
	ErrGap       = errors.New("reply frames are missing")
	ErrMalformed = errors.New("reply frames are malformed")
	ErrOverflow  = errors.New("worker sends more than the client takes")
	ErrGone      = errors.New("client has gone")
	ErrStopping  = errors.New("service is stopping")
)

// ErrSilent is no end: the answer has not begun, and its client should get a sign of life.
var ErrSilent = errors.New("the answer has not begun")

// Reason is a short name of err for a metric; the set of names is closed.
func Reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return "other"
}

var reasons = []struct {
	err  error
	name string
}{
	{ErrNotTaken, "not_taken"},
	{ErrDeadline, "deadline"},
	{ErrLost, "lost"},
	{ErrDied, "died"},
	{ErrBroken, "broken"},
	{ErrGap, "gap"},
	{ErrMalformed, "malformed"},
	{ErrOverflow, "overflow"},
	{ErrGone, "gone"},
	{ErrStopping, "stopping"},
}

// Reasons lists every result of Reason.
func Reasons() []string {
	names := make([]string, 0, len(reasons)+1)
	for _, r := range reasons {
		names = append(names, r.name)
	}
	return append(names, "other")
}

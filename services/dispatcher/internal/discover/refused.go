package discover

import (
	"errors"
	"fmt"

	"hydrallm/services/dispatcher/internal/classify"
)

// RefusedError says that a provider gave no list of models, and what that means for the key that was used.
type RefusedError struct {
	Verdict classify.Verdict

	err error // of the transport, or nil
}

// Error names the class and the reason of the verdict, neither of which holds what the provider wrote.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the provider did not list its models: %s (%s)", e.Verdict.Class, e.Verdict.Reason)
}

// Unwrap gives the error of the transport, if there was one.
func (e *RefusedError) Unwrap() error { return e.err }

// unusable is the error about an answer that went well but is no list.
func unusable(reason string) error {
	v := classify.Ended(classify.ErrEmptyAnswer)
	v.Reason = reason
	return &RefusedError{Verdict: v}
}

// refused says whether the provider answered, and so may know another way to list its models.
func refused(err error) bool {
	e, ok := errors.AsType[*RefusedError](err)
	return ok && e.err == nil
}

// ofKey says whether another key of the provider may have more luck.
func ofKey(err error) bool {
	e, ok := errors.AsType[*RefusedError](err)
	if !ok {
		return false
	}
	switch e.Verdict.Class { //nolint:exhaustive // the others are about the provider
	case classify.Auth, classify.Forbidden, classify.Rate, classify.Quota, classify.Payment:
		return true
	}
	return false
}

// reached says whether the provider was there, whatever it answered, if that is known.
func reached(err error) (ok, known bool) {
	if err == nil || refused(err) {
		return true, true
	}
	e, is := errors.AsType[*RefusedError](err)
	return false, is && e.Verdict.Unreached
}

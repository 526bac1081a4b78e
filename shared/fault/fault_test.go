package fault_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/fault"
)

// each kind has one status.
func TestStatusOfEachKind(t *testing.T) {
	t.Parallel()
	tests := map[fault.Kind]struct {
		status int
		typ    string
	}{
		fault.Invalid:         {http.StatusBadRequest, "invalid_request_error"},
		fault.Unauthorized:    {http.StatusUnauthorized, "authentication_error"},
		fault.Forbidden:       {http.StatusForbidden, "permission_error"},
		fault.ModelNotFound:   {http.StatusNotFound, "invalid_request_error"},
		fault.NotFound:        {http.StatusNotFound, "invalid_request_error"},
		fault.MethodNot:       {http.StatusMethodNotAllowed, "invalid_request_error"},
		fault.TooLarge:        {http.StatusRequestEntityTooLarge, "invalid_request_error"},
		fault.BadEncoding:     {http.StatusUnsupportedMediaType, "invalid_request_error"},
		fault.HeaderTooLarge:  {http.StatusRequestHeaderFieldsTooLarge, "invalid_request_error"},
		fault.Timeout:         {http.StatusRequestTimeout, "invalid_request_error"},
		fault.Conflict:        {http.StatusConflict, "conflict_error"},
		fault.KeyReused:       {http.StatusUnprocessableEntity, "invalid_request_error"},
		fault.RateLimited:     {http.StatusTooManyRequests, "rate_limit_error"},
		fault.Busy:            {http.StatusServiceUnavailable, "service_unavailable"},
		fault.Failed:          {http.StatusServiceUnavailable, "service_unavailable"},
		fault.UpstreamAuth:    {http.StatusFailedDependency, "upstream_error"},
		fault.PremiumKey:      {http.StatusFailedDependency, "upstream_error"},
		fault.Unavailable:     {http.StatusServiceUnavailable, "service_unavailable"},
		fault.Internal:        {http.StatusInternalServerError, "server_error"},
		fault.Refused:         {http.StatusBadRequest, "invalid_request_error"},
		fault.Kind("no kind"): {http.StatusInternalServerError, "server_error"},
	}
	for kind, want := range tests {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f := fault.New(kind, "text")
			require.Equal(t, want.status, f.Status())
			require.Equal(t, want.status, kind.Status())
			require.Equal(t, want.typ, f.Type())
		})
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	require.Equal(t, "model_not_found", fault.New(fault.ModelNotFound, "x").PublicCode())
	require.Equal(t, "own", (&fault.Fault{Kind: fault.Invalid, Code: "own"}).PublicCode())
	require.Empty(t, fault.New(fault.Refused, "x").PublicCode(), "the code of the gateway is not the upstream's")
	require.Equal(t, "theirs", (&fault.Fault{Kind: fault.Refused, Code: "theirs"}).PublicCode())
}

// what an upstream refused keeps its status and type.
func TestOverrides(t *testing.T) {
	t.Parallel()
	f := &fault.Fault{Kind: fault.Refused, HTTPStatus: http.StatusUnprocessableEntity, ErrorType: "their_type"}
	require.Equal(t, http.StatusUnprocessableEntity, f.Status())
	require.Equal(t, "their_type", f.Type())
}

// the cause is for the log and never becomes the public message.
func TestFrom(t *testing.T) {
	t.Parallel()
	f := fault.New(fault.Busy, "all upstreams busy")
	f.Cause = io.ErrUnexpectedEOF
	wrapped := fmt.Errorf("running: %w", f)
	require.Same(t, f, fault.From(wrapped))
	require.ErrorIs(t, wrapped, io.ErrUnexpectedEOF)
	require.Equal(t, "all upstreams busy: unexpected EOF", f.Error())

	secret := errors.New("dial tcp 10.0.0.7: secret")
	hidden := fault.From(secret)
	require.Equal(t, fault.Internal, hidden.Kind)
	require.Equal(t, "Internal server error", hidden.Message)
	require.ErrorIs(t, hidden, secret)
	require.Equal(t, "plain", fault.New(fault.Invalid, "plain").Error())
}

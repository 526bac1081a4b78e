package fault_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/surface/chat"
)

// status and headers are the same whichever service answers; a wait is never shown shorter than it is, and one above a minute is
// in the body alone.
func TestHead(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]int64{
		0: 0, -time.Second: 0, 1: 1, time.Second: 1, time.Second + 1: 2, 1500 * time.Millisecond: 2, time.Minute: 60, time.Minute + 1: 61,
		time.Hour: 3600, math.MaxInt64: 9223372037,
	} {
		f := &fault.Fault{Kind: fault.Busy, RetryAfter: wait}
		head := contract.Head{Status: http.StatusServiceUnavailable, Header: [][2]string{{"Content-Type", "application/json"}}}
		switch {
		case want > 60:
			head.Header = append(head.Header, [2]string{"X-Should-Retry", "false"})
		case want > 0:
			head.Header = append(head.Header, [2]string{"Retry-After", strconv.FormatInt(want, 10)})
		}
		require.Equal(t, head, f.Head(), wait)
		told := gjson.GetBytes(chat.Errors{}.AppendBody(nil, f, ""), "error.retry_after")
		require.Equal(t, want > 0, told.Exists())
		require.Equal(t, want, told.Int())
	}
	never := &fault.Fault{Kind: fault.RateLimited, RetryAfter: fault.Never}
	require.Contains(t, never.Head().Header, [2]string{"X-Should-Retry", "false"})
	require.False(t, gjson.GetBytes(chat.Errors{}.AppendBody(nil, never, ""), "error.retry_after").Exists())
	refused := &fault.Fault{Kind: fault.Refused, HTTPStatus: http.StatusTeapot}
	require.Equal(t, http.StatusTeapot, refused.Head().Status)
}

// A declared fault is known again by kind and code, whatever it says.
func TestIs(t *testing.T) {
	t.Parallel()
	running := fault.New(fault.Conflict, "it is under way")
	said := fmt.Errorf("asking: %w", &fault.Fault{Kind: fault.Conflict, Message: "other words", Param: "p", Cause: errors.New("why")})
	require.ErrorIs(t, said, running)
	require.NotErrorIs(t, said, fault.New(fault.Invalid, "it is under way"))
	require.NotErrorIs(t, said, &fault.Fault{Kind: fault.Conflict, Code: "another"})
	require.NotErrorIs(t, said, errors.New("it is under way"))
}

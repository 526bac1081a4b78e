package task_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/agent/task"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var limits = upstream.Call{HeadersTimeout: time.Minute, RequestTimeout: time.Hour}

// endless is a body that brings nothing until its context ends.
type endless struct {
	ctx    context.Context //nolint:containedctx // that of the task
	closed *bool
}

func (e endless) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

func (e endless) Close() error {
	*e.closed = true
	return nil
}

func TestClocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, tk := task.Begin(t.Context(), limits)
		<-ctx.Done()
		require.ErrorIs(t, tk.Fail(errors.New("shows up somehow")), classify.ErrHeaderTimeout)
		require.Equal(t, time.Minute, time.Since(began))

		began, closed := time.Now(), false
		ctx, tk = task.Begin(t.Context(), limits)
		resp := tk.Stream(endless{ctx, &closed})
		_, err := io.ReadAll(resp.Body)
		require.ErrorIs(t, err, classify.ErrTotalTimeout)
		require.Equal(t, time.Hour, time.Since(began))
		resp.Close()
		require.True(t, closed)
	})
}

func TestEnds(t *testing.T) {
	t.Parallel()
	ctx, tk := task.Begin(t.Context(), limits)
	resp := tk.Answer(502, "application/json", []byte("{}"))
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "{}", string(text))
	require.Equal(t, 502, resp.Status)
	require.NoError(t, ctx.Err())
	resp.Close()
	require.Error(t, ctx.Err())

	ctx, tk = task.Begin(t.Context(), limits)
	resp = tk.Stream(io.NopCloser(strings.NewReader("data")))
	resp.Abort(classify.ErrIdleTimeout)
	require.ErrorIs(t, context.Cause(ctx), classify.ErrIdleTimeout)
	resp.Close()

	own := errors.New("it failed")
	ctx, tk = task.Begin(t.Context(), limits)
	require.Equal(t, own, tk.Fail(own))
	require.Error(t, ctx.Err())
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	require.True(t, task.Unreachable(refused))
	require.False(t, task.Unreachable(&net.OpError{Op: "read", Err: syscall.ECONNRESET}))
	require.False(t, task.Unreachable(context.Canceled))
	require.False(t, task.Unreachable(nil))
}

package task_test

import (
	"context"
	"errors"
	"io"
	"net"
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
		resp := tk.Stream(func() { closed = true })
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(resp.Context()), classify.ErrTotalTimeout)
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
	resp = tk.Stream(func() {})
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

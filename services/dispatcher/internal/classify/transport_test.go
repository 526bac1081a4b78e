package classify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/openai"
)

// R-100, CB-03: errors of the connection and time-outs count, a client that leaves does not.
func TestTransport(t *testing.T) {
	t.Parallel()
	wrapped := func(err error) error { return &url.Error{Op: "Post", URL: "https://x", Err: err} }
	for name, c := range map[string]struct {
		err    error
		reason string
	}{
		"refused":        {wrapped(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), "connection refused"},
		"unreachable":    {wrapped(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}), "connect"},
		"reset":          {wrapped(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), "connection reset"},
		"broken pipe":    {wrapped(os.NewSyscallError("write", syscall.EPIPE)), "connection reset"},
		"name":           {wrapped(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x"}}), "dns"},
		"certificate":    {wrapped(&tls.CertificateVerificationError{Err: errors.New("expired")}), "tls"},
		"not TLS":        {wrapped(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), "tls"},
		"alert":          {wrapped(tls.AlertError(40)), "tls"},
		"closed":         {wrapped(io.EOF), "connection closed"},
		"cut":            {fmt.Errorf("reading body: %w", io.ErrUnexpectedEOF), "connection closed"},
		"dial timeout":   {wrapped(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}), "timeout"},
		"deadline":       {wrapped(context.DeadlineExceeded), "timeout"},
		"header timeout": {ErrHeaderTimeout, "header timeout"},
		"total timeout":  {ErrTotalTimeout, "total timeout"},
		"idle timeout":   {ErrIdleTimeout, "idle timeout"},
		"empty":          {ErrEmptyAnswer, "empty answer"},
		"truncated":      {fmt.Errorf("reading stream: %w", ErrTruncated), "truncated"},
		"too large":      {ErrTooLarge, "too large"},
		"a large event":  {fmt.Errorf("reading stream: %w", openai.ErrEventTooLarge), "too large"},
		"anything":       {errors.New("secret inside"), "transport"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := Transport(t.Context(), c.err)
			want := Verdict{Class: Upstream, Breaker: true, Cooldown: OtherCooldown, Reason: c.reason, Hung: name == "header timeout"}
			switch name {
			case "refused", "unreachable", "name", "certificate", "not TLS", "alert", "dial timeout":
				want.Unreached, want.Cooldown, want.Wait = true, NoCooldown, 5*time.Second
			}
			require.Equal(t, want, v)
			require.Equal(t, Retry, v.Next(named))
		})
	}
}

func TestTransportCause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause error
		want  Class
	}{
		"client gone":    {ErrClientGone, Cancelled},
		"no cause":       {nil, Cancelled},
		"header timeout": {ErrHeaderTimeout, Upstream},
		"total timeout":  {fmt.Errorf("call: %w", ErrTotalTimeout), Upstream},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(c.cause)
			v := Transport(ctx, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)})
			require.Equal(t, c.want, v.Class)
			require.Equal(t, c.want == Upstream, v.Breaker)
			if c.want == Cancelled {
				require.Equal(t, Stop, v.Next(named))
				require.Equal(t, Stop, v.Next(auto))
				require.False(t, v.Failed())
				require.Equal(t, NoCooldown, v.Cooldown)
				require.Empty(t, v.Class.Category())
			}
		})
	}
}

// The causes survive the real HTTP client, before and after the headers.
func TestTransportThroughHTTP(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
		}
		<-release
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(release) })
	for _, path := range []string{"/head", "/body"} {
		for cause, want := range map[error]string{ErrClientGone: "client gone", ErrHeaderTimeout: "header timeout", ErrTotalTimeout: "total timeout"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			t.Cleanup(func() { cancel(nil) })
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+path, strings.NewReader("{}"))
			require.NoError(t, err)
			if path == "/head" {
				go cancel(cause)
			}
			resp, err := srv.Client().Do(req)
			if path == "/body" {
				require.NoError(t, err)
				go cancel(cause)
				_, err = io.Copy(io.Discard, resp.Body)
			}
			if resp != nil {
				require.NoError(t, resp.Body.Close())
			}
			require.Error(t, err)
			require.Equal(t, want, Transport(ctx, err).Reason, path)
		}
	}
}

package upstream_test

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/pipenet"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func call(url string) upstream.Call {
	return upstream.Call{
		URL: url, Header: http.Header{"X-Own": {"1"}}, Body: []byte(`{"a":1}`),
		HeadersTimeout: 240 * time.Second, RequestTimeout: 300 * time.Second,
	}
}

func serve(t *testing.T, handler http.HandlerFunc) (*upstream.Client, string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	c := upstream.New(upstream.Config{UserAgent: "test"})
	t.Cleanup(c.Close)
	return c, s.URL
}

func TestCallSendsWhatWasGiven(t *testing.T) {
	t.Parallel()
	type seen struct {
		body, own, agent, encoding string
		length                     int64
	}
	got := make(chan seen, 1)
	c, url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{string(body), r.Header.Get("X-Own"), r.UserAgent(), r.Header.Get("Accept-Encoding"), r.ContentLength}
		_, _ = io.WriteString(w, "ok")
	})
	resp, err := c.Do(t.Context(), call(url))
	require.NoError(t, err)
	defer resp.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "ok", string(body))
	require.Equal(t, seen{`{"a":1}`, "1", "test", "gzip", 7}, <-got)
}

// HDR-01: gzip is read whether it was asked for or not; an encoding nobody can read is an error.
func TestEncodings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		encoding string
		fails    bool
	}{
		"plain":    {"", false},
		"identity": {"identity", false},
		"none":     {"none", false},
		"charset":  {"UTF-8", false},
		"gzip":     {"gzip", false},
		"brotli":   {"br", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.encoding != "" {
					w.Header().Set("Content-Encoding", tc.encoding)
				}
				if tc.encoding == "gzip" {
					z := gzip.NewWriter(w)
					_, _ = io.WriteString(z, "hello")
					_ = z.Close()
					return
				}
				_, _ = io.WriteString(w, "hello")
			})
			stream := call(url)
			stream.Stream = true
			resp, err := c.Do(t.Context(), stream)
			if tc.fails {
				require.ErrorIs(t, err, upstream.ErrEncoding)
				return
			}
			require.NoError(t, err)
			defer resp.Close()
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "hello", string(body))
		})
	}
}

// An upstream that redirects is misconfigured; its credentials must not travel to another host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	c, url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
	})
	resp, err := c.Do(t.Context(), call(url))
	require.NoError(t, err)
	defer resp.Close()
	require.Equal(t, http.StatusTemporaryRedirect, resp.Status)
}

func TestHugeHeaderIsRefused(t *testing.T) {
	t.Parallel()
	c, url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Huge", strings.Repeat("x", 1<<20))
	})
	_, err := c.Do(t.Context(), call(url))
	require.Error(t, err)
}

func TestConnectionIsReused(t *testing.T) {
	t.Parallel()
	addrs := make(chan string, 3)
	c, url := serve(t, func(_ http.ResponseWriter, r *http.Request) { addrs <- r.RemoteAddr })
	for range 3 {
		resp, err := c.Do(t.Context(), call(url))
		require.NoError(t, err)
		resp.Drain(time.Second)
	}
	first := <-addrs
	require.Equal(t, first, <-addrs)
	require.Equal(t, first, <-addrs)
}

// hang serves an upstream that sends headers at once, or never, and then nothing.
func hang(headers bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if headers {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

// no headers within 240 s end the call. Scenario 10.
func TestHeaderTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := pipenet.New()
		defer n.Serve("u", hang(false))()
		c := upstream.New(upstream.Config{Dial: n.Dial})
		defer c.Close()
		start := time.Now()
		_, err := c.Do(t.Context(), call("http://u/v1"))
		require.ErrorIs(t, err, classify.ErrHeaderTimeout)
		require.Equal(t, 240*time.Second, time.Since(start))
	})
}

// the limit of the whole call counts from sending and covers the body.
func TestTotalTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := pipenet.New()
		defer n.Serve("u", hang(true))()
		c := upstream.New(upstream.Config{Dial: n.Dial})
		defer c.Close()
		start := time.Now()
		resp, err := c.Do(t.Context(), call("http://u/v1"))
		require.NoError(t, err)
		defer resp.Close()
		_, err = io.ReadAll(resp.Body)
		require.ErrorIs(t, err, classify.ErrTotalTimeout)
		require.Equal(t, 300*time.Second, time.Since(start))
	})
}

// the client's leaving ends the call with that cause.
func TestClientGoneEndsTheRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := pipenet.New()
		defer n.Serve("u", hang(true))()
		c := upstream.New(upstream.Config{Dial: n.Dial})
		defer c.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		resp, err := c.Do(ctx, call("http://u/v1"))
		require.NoError(t, err)
		defer resp.Close()
		time.AfterFunc(time.Second, func() { cancel(classify.ErrClientGone) })
		_, err = io.ReadAll(resp.Body)
		require.ErrorIs(t, err, classify.ErrClientGone)
	})
}

func TestDrainGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := pipenet.New()
		defer n.Serve("u", hang(true))()
		c := upstream.New(upstream.Config{Dial: n.Dial})
		defer c.Close()
		resp, err := c.Do(t.Context(), call("http://u/v1"))
		require.NoError(t, err)
		start := time.Now()
		resp.Drain(100 * time.Millisecond)
		require.Equal(t, 100*time.Millisecond, time.Since(start))
	})
}

// watched tells when a connection is closed on this side.
type watched struct {
	net.Conn
	closed chan struct{}
	once   sync.Once
}

func (w *watched) Close() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

// A connection that the upstream closed while nothing was under way has not seen the request: the call is made on another one, and is no
// failure of anybody.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(s.Close)
	var last *watched
	c := upstream.New(upstream.Config{Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		last = &watched{Conn: conn, closed: make(chan struct{})}
		return last, err
	}})
	t.Cleanup(c.Close)
	reused := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if info.Reused {
			reused++
			s.CloseClientConnections()
			<-last.closed
		}
	}})
	for range 3 {
		resp, err := c.Do(ctx, call("http://bücher.test/v1")) // whose calls net/http makes
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "ok", string(body))
		resp.Close()
	}
	require.Positive(t, reused)
	require.EqualValues(t, 3, calls.Load())
}

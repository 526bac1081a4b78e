//go:build unix

package upstream_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
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
)

// scripted is an upstream of which each connection is served by a function of the test, which may break all rules.
type scripted struct {
	client *upstream.Client
	url    string
	dials  atomic.Int64
	last   atomic.Pointer[net.TCPConn]
}

func script(t *testing.T, serve func(conn net.Conn, r *bufio.Reader)) *scripted {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close() //nolint:errcheck // the other side tells
				serve(conn, bufio.NewReader(conn))
			})
		}
	})
	s := &scripted{url: "http://" + l.Addr().String() + "/v1"}
	s.client = upstream.New(upstream.Config{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if tcp, ok := conn.(*net.TCPConn); ok {
			s.dials.Add(1)
			s.last.Store(tcp)
		}
		return conn, err
	}})
	t.Cleanup(func() {
		s.client.Close()
		_ = l.Close()
		serving.Wait()
	})
	return s
}

// read makes a call and gives its answer.
func (s *scripted) read(ctx context.Context, c upstream.Call) (string, error) {
	resp, err := s.client.Do(ctx, c)
	if err != nil {
		return "", err
	}
	defer resp.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// request takes one request off a connection; false at its end.
func request(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

// A connection on which the upstream has closed, or has said something, while nothing was under way is not used again: the call is no failure
// of anybody.
func TestKeptConnectionThatIsNotSilent(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]string{"closed": "", "talking": "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script(t, func(conn net.Conn, r *bufio.Reader) {
				if request(r) {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"+after)
				}
			})
			for n := range 3 {
				text, err := s.read(t.Context(), call(s.url))
				require.NoError(t, err)
				require.Equal(t, "ok", text)
				require.EqualValues(t, n+1, s.dials.Load())
				for last := s.last.Load(); !upstream.Heard(last); {
					runtime.Gosched()
				}
			}
		})
	}
}

// What answers may look like on the wire, and whether the connection is good for the next call.
func TestAnswersOnTheWire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wire, body string
		err        error // of reading
		kept       bool
	}{
		"length":          {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", nil, true},
		"chunks":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n", "hello", nil, true},
		"nothing":         {"HTTP/1.1 204 No Content\r\n\r\n", "", nil, true},
		"other protocol":  {"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "", nil, false},
		"early hints":     {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", nil, true},
		"says it closes":  {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", "hello", nil, false},
		"old":             {"HTTP/1.0 200 OK\r\n\r\nhello", "hello", nil, false},
		"until the end":   {"HTTP/1.1 200 OK\r\n\r\nhello", "hello", nil, false},
		"more than asked": {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n", "hello", nil, false},
		"too short":       {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "hello", io.ErrUnexpectedEOF, false},
		"broken chunks":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "hello", io.ErrUnexpectedEOF, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script(t, func(conn net.Conn, r *bufio.Reader) {
				for request(r) {
					_, _ = io.WriteString(conn, c.wire)
					if !c.kept {
						return
					}
				}
			})
			for range 2 {
				text, err := s.read(t.Context(), call(s.url))
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.body, text)
			}
			require.Equal(t, c.kept, s.dials.Load() == 1)
		})
	}
}

// Answers that are none: the call fails, and says as what.
func TestBrokenAnswersOnTheWire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wire   string
		reason string
	}{
		"nothing":          {"", "connection closed"},
		"half a header":    {"HTTP/1.1 200 OK\r\nContent-Le", "transport"},
		"no HTTP":          {"SSH-2.0-OpenSSH_9.6\r\n\r\n", "transport"},
		"a header at last": {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 10) + "HTTP/1.1 200 OK\r\n\r\n", "transport"},
		"a large header":   {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n\r\n", "transport"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script(t, func(conn net.Conn, r *bufio.Reader) {
				if request(r) {
					_, _ = io.WriteString(conn, c.wire)
				}
			})
			_, err := s.read(t.Context(), call(s.url))
			require.Error(t, err)
			require.Equal(t, c.reason, classify.Transport(t.Context(), err).Reason)
		})
	}
}

// An upstream may answer before it has read a large body, and need not read it at all.
func TestAnswerBeforeTheBody(t *testing.T) {
	t.Parallel()
	s := script(t, func(conn net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err == nil { // the header
			_, _ = io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nlarge")
			_, _ = r.Peek(1)
			<-t.Context().Done() // the body stays where it is
		}
	})
	large := call(s.url)
	large.Body = make([]byte, 32<<20) // more than any socket takes
	text, err := s.read(t.Context(), large)
	require.NoError(t, err)
	require.Equal(t, "large", text)
}

// A call that ends closes its connection, wherever it stands.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	gone := errors.New("the client is gone")
	for name, wire := range map[string]string{"before the header": "", "in the body": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there, closed := make(chan struct{}), make(chan struct{})
			s := script(t, func(conn net.Conn, r *bufio.Reader) {
				if request(r) {
					_, _ = io.WriteString(conn, wire)
					close(there)
					_, _ = r.ReadByte()
					close(closed)
				}
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var ending sync.WaitGroup
			ending.Go(func() {
				<-there
				cancel(gone)
			})
			_, err := s.read(ctx, call(s.url))
			require.ErrorIs(t, err, gone)
			<-closed
			ending.Wait()
		})
	}
}

// A connection that nobody uses is closed after a while, and is not in the way of the next call.
func TestIdleConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := pipenet.New()
		var conns atomic.Int64
		defer n.Serve("u", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))()
		c := upstream.New(upstream.Config{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conns.Add(1)
			return n.Dial(ctx, network, addr)
		}})
		defer c.Close()
		ask := func() {
			resp, err := c.Do(t.Context(), call("http://u/v1"))
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			resp.Close()
		}
		ask()
		<-time.After(time.Minute)
		ask()
		require.EqualValues(t, 1, conns.Load())
		<-time.After(2 * time.Minute)
		ask()
		require.EqualValues(t, 2, conns.Load())
	})
}

// counted counts what is written to a connection, in calls.
type counted struct {
	net.Conn

	writes *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// A large body is sent from where it lies: what fills the buffer behind the header, then all the rest.
func TestLargeBodyInOnePiece(t *testing.T) {
	t.Parallel()
	s := script(t, func(conn net.Conn, r *bufio.Reader) {
		for request(r) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	})
	var writes atomic.Int64
	client := upstream.New(upstream.Config{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return counted{conn, &writes}, err
	}})
	defer client.Close()
	large := call(s.url)
	large.Body = make([]byte, 1<<20)
	resp, err := client.Do(t.Context(), large)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	resp.Close()
	require.LessOrEqual(t, writes.Load(), int64(2))
}

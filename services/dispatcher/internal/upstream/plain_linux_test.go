package upstream_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/upstream"
)

// hooked does something before it writes.
type hooked struct {
	*net.TCPConn
	before func()
}

func (h *hooked) Write(p []byte) (int, error) {
	h.before()
	return h.TCPConn.Write(p)
}

// an upstream that closes a kept connection while the next request is on its way to it has not seen that. The call is made on another one, and is no
// failure of anybody.
func TestConnectionClosedWhileTheRequestIsOnItsWay(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 10, "large": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			var serving atomic.Pointer[net.Conn]
			s := script(t, func(conn net.Conn, r *bufio.Reader) {
				serving.Store(&conn)
				for request(r) {
					requests.Add(1)
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
			var armed atomic.Bool
			dials := 0
			c := upstream.New(upstream.Config{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				dials++
				tcp := conn.(*net.TCPConn) //nolint:forcetypeassert // of the network tcp
				return &hooked{tcp, func() {
					if armed.CompareAndSwap(true, false) {
						_ = (*serving.Load()).Close()
						for !upstream.Heard(tcp) {
							runtime.Gosched()
						}
					}
				}}, nil
			}})
			t.Cleanup(c.Close)
			s.client = c
			for n := range 3 {
				armed.Store(n == 1)
				ask := call(s.url)
				if n == 1 {
					ask.Body = make([]byte, size)
				}
				text, err := s.read(t.Context(), ask)
				require.NoError(t, err)
				require.Equal(t, "ok", text)
			}
			require.GreaterOrEqual(t, dials, 2)
			require.EqualValues(t, 3, requests.Load())
		})
	}
}

// one that has the request, and closes without an answer, may have done what was asked. It is not asked again behind the back of whoever counts calls.
func TestConnectionClosedByWhoHasTheRequest(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	s := script(t, func(conn net.Conn, r *bufio.Reader) {
		for request(r) && requests.Add(1) != 2 {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	_, err := s.read(t.Context(), call(s.url))
	require.NoError(t, err)
	_, err = s.read(t.Context(), call(s.url))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "connection closed", classify.Transport(t.Context(), err).Reason)
	require.EqualValues(t, 1, s.dials.Load())
	require.EqualValues(t, 2, requests.Load())
}

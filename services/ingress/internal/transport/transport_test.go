package transport_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"hydrallm/services/ingress/internal/transport"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/certtest"
)

// fasthttp keeps the text of the Date header in a goroutine for the life of the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

const testWait = await.Limit

// serve runs handler on a free port and gives a connection to it.
func serve(t *testing.T, handler fasthttp.RequestHandler) (*transport.Server, *net.TCPConn) {
	t.Helper()
	s := transport.NewServer(0, slog.New(slog.DiscardHandler))
	require.NoError(t, s.Start(t.Context(), transport.Door{Addr: "127.0.0.1:0"}, &fasthttp.Server{Handler: handler, StreamRequestBody: true, MaxRequestBodySize: 1}))
	t.Cleanup(s.Close)
	conn, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(testWait)))
	return s, conn.(*net.TCPConn) //nolint:forcetypeassert // it was dialled
}

const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// a connection knows whether its client has gone, and what the client sent stays there.
func TestGone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	tests := map[string]struct {
		act  func(*net.TCPConn) error
		gone bool
	}{
		"silent":        {func(*net.TCPConn) error { return nil }, false},
		"next request":  {func(c *net.TCPConn) error { _, err := io.WriteString(c, request); return err }, false},
		"closed":        {(*net.TCPConn).Close, true},
		"finished":      {(*net.TCPConn).CloseWrite, true},
		"reset":         {func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() }, true},
		"data and gone": {func(c *net.TCPConn) error { _, err := io.WriteString(c, "x"); _ = c.Close(); return err }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conns, release := make(chan *transport.Conn, 2), make(chan struct{})
			_, client := serve(t, func(ctx *fasthttp.RequestCtx) {
				conns <- ctx.Conn().(*transport.Conn) //nolint:forcetypeassert // the server makes no others
				<-release
			})
			defer close(release)
			_, err := io.WriteString(client, request)
			require.NoError(t, err)
			c := <-conns
			require.False(t, c.Gone())
			require.NoError(t, tt.act(client))
			if tt.gone {
				await.True(t, c.Gone)
				return
			}
			require.Never(t, c.Gone, 50*time.Millisecond, 10*time.Millisecond)
		})
	}
}

func TestGoneAfterClose(t *testing.T) {
	t.Parallel()
	conns := make(chan *transport.Conn, 1)
	_, client := serve(t, func(ctx *fasthttp.RequestCtx) {
		conns <- ctx.Conn().(*transport.Conn) //nolint:forcetypeassert // the server makes no others
		ctx.SetConnectionClose()
	})
	_, err := io.WriteString(client, request)
	require.NoError(t, err)
	_, err = io.ReadAll(client)
	require.NoError(t, err)
	c := <-conns
	require.NoError(t, c.Close(), "closing is idempotent")
	if runtime.GOOS == "linux" {
		require.True(t, c.Gone())
	}
	c.Abort()
}

// A lingering connection reads on until the client stops, and gives up when it is aborted.
func TestLinger(t *testing.T) {
	t.Parallel()
	conns := make(chan *transport.Conn, 1)
	s, client := serve(t, func(ctx *fasthttp.RequestCtx) {
		c := ctx.Conn().(*transport.Conn) //nolint:forcetypeassert // the server makes no others
		c.Linger()
		ctx.SetConnectionClose()
		conns <- c
	})
	_, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\nx")
	require.NoError(t, err)
	answer, err := io.ReadAll(client)
	require.NoError(t, err, "the answer ends although the client goes on")
	require.Contains(t, string(answer), "200 OK")
	chunk := make([]byte, 1<<20)
	for range 32 {
		_, err := client.Write(chunk)
		require.NoError(t, err)
	}
	require.Equal(t, 1, s.Len())
	(<-conns).Abort()
	await.True(t, func() bool { return s.Len() == 0 })
}

// A stop closes idle connections at once, and waits for busy ones.
func TestDrain(t *testing.T) {
	t.Parallel()
	busy, release := make(chan struct{}), make(chan struct{})
	s, client := serve(t, func(*fasthttp.RequestCtx) {
		close(busy)
		<-release
	})
	idle, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	defer idle.Close() //nolint:errcheck // only read
	_, err = io.WriteString(client, request)
	require.NoError(t, err)
	<-busy
	require.False(t, s.Stopping())
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Drain(short), context.DeadlineExceeded)
	require.True(t, s.Stopping())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	_, err = idle.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	close(release)
	wg.Wait()
	require.Zero(t, s.Len())
}

func TestServerThatNeverStarted(t *testing.T) {
	t.Parallel()
	s := transport.NewServer(0, slog.New(slog.DiscardHandler))
	require.NoError(t, s.Drain(t.Context()))
	s.Close()
}

// over TLS a client says that it leaves before it does, so that there is something to be read.
func TestGoneOverTLS(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	made := certtest.New(t, 1)
	pair, err := tls.X509KeyPair(made.Cert, made.Key)
	require.NoError(t, err)
	for name, act := range map[string]func(*tls.Conn) error{
		"closed":   (*tls.Conn).Close,
		"reset":    func(c *tls.Conn) error { tcp := c.NetConn().(*net.TCPConn); _ = tcp.SetLinger(0); return tcp.Close() }, //nolint:forcetypeassert // it was dialled
		"finished": func(c *tls.Conn) error { return c.NetConn().(*net.TCPConn).CloseWrite() },                              //nolint:forcetypeassert // it was dialled
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conns, release := make(chan *transport.Conn, 1), make(chan struct{})
			s := transport.NewServer(0, slog.New(slog.DiscardHandler))
			require.NoError(t, s.Start(t.Context(), transport.Door{Addr: "127.0.0.1:0", TLS: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}}, &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
				conns <- ctx.Conn().(*transport.Conn) //nolint:forcetypeassert // the server makes no others
				<-release
			}}))
			t.Cleanup(s.Close)
			defer close(release)
			client, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec,noctx // of this test
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			_, err = io.WriteString(client, request)
			require.NoError(t, err)
			c := await.Value(t, conns)
			require.False(t, c.Gone())
			require.NoError(t, act(client))
			await.True(t, c.Gone)
		})
	}
}

// a server takes over sockets that listen already. While none does, who connects waits, and nobody is refused.
func TestSocketsOfOthers(t *testing.T) {
	t.Parallel()
	var sockets []*os.File
	var addrs []string
	for range 2 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		socket, err := ln.(*net.TCPListener).File() //nolint:forcetypeassert // TCP
		require.NoError(t, err)
		t.Cleanup(func() { _ = socket.Close() })
		sockets, addrs = append(sockets, socket), append(addrs, ln.Addr().String())
		require.NoError(t, ln.Close())
	}
	var waiting []net.Conn
	for range 3 {
		s := transport.NewServer(0, slog.New(slog.DiscardHandler))
		require.NoError(t, s.Start(t.Context(), transport.Door{Addr: "not used", Sockets: sockets}, &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}}))
		require.Equal(t, addrs[0], s.Addr().String())
		for _, conn := range waiting {
			_, err := io.ReadFull(conn, make([]byte, 15))
			require.NoError(t, err)
			require.NoError(t, conn.Close())
		}
		waiting = nil
		require.NoError(t, s.Drain(t.Context()))
		for _, addr := range addrs {
			conn, err := net.Dial("tcp", addr)
			require.NoError(t, err, "nobody serves, and nobody is refused")
			require.NoError(t, conn.SetDeadline(time.Now().Add(testWait)))
			t.Cleanup(func() { _ = conn.Close() })
			_, err = io.WriteString(conn, request)
			require.NoError(t, err)
			waiting = append(waiting, conn)
		}
	}
	other, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	require.NoError(t, err)
	socket, err := other.(*net.UnixListener).File() //nolint:forcetypeassert // a Unix socket
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = socket.Close(), other.Close() })
	s := transport.NewServer(0, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, s.Start(t.Context(), transport.Door{Sockets: []*os.File{sockets[0], socket}}, &fasthttp.Server{}), "only TCP")
	require.NoError(t, s.Drain(t.Context()))
}

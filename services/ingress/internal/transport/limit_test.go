package transport

import (
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"hydrallm/shared/testkit/await"
)

// limited is a server with a limit of two connections. Each request waits until it is released.
type limited struct {
	*Server
	t        *testing.T
	requests chan served
}

type served struct {
	conn    *Conn
	client  net.Conn
	release chan struct{}
}

func startLimited(t *testing.T) *limited {
	t.Helper()
	x := &limited{NewServer(2, slog.New(slog.DiscardHandler)), t, make(chan served, 1)}
	require.NoError(t, x.Start(t.Context(), Door{Addr: "127.0.0.1:0"}, &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		r := served{conn: ctx.Conn().(*Conn), release: make(chan struct{})} //nolint:forcetypeassert // the server makes no others
		x.requests <- r
		<-r.release
	}}))
	t.Cleanup(x.Close)
	return x
}

const limitWait = await.Limit

func (x *limited) dial() net.Conn {
	x.t.Helper()
	conn, err := net.Dial("tcp", x.Addr().String())
	require.NoError(x.t, err)
	x.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(x.t, conn.SetDeadline(time.Now().Add(limitWait)))
	return conn
}

// ask sends a request on a connection and waits until it is served.
func (x *limited) ask(client net.Conn) served {
	x.t.Helper()
	_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(x.t, err)
	r := <-x.requests
	r.client = client
	return r
}

// answer lets a request end and waits until its connection is idle.
func (x *limited) answer(r served) {
	x.t.Helper()
	close(r.release)
	_, err := r.client.Read(make([]byte, 4096))
	require.NoError(x.t, err)
	await.True(x.t, func() bool { return r.conn.state.Load() == stateIdle })
}

// at the limit a new connection takes the place of the one that was idle for longest, and is surplus while all are busy. Beyond the reserve it
// is closed.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	x := startLimited(t)
	first, second, third := x.ask(x.dial()), x.ask(x.dial()), x.ask(x.dial())
	require.Equal(t, []bool{false, false, true}, []bool{first.conn.Surplus(), second.conn.Surplus(), third.conn.Surplus()})
	x.answer(third)
	require.NoError(t, third.client.Close())
	await.True(t, func() bool { return x.Len() == 2 })

	x.answer(second)
	x.answer(first)
	fourth := x.ask(x.dial())
	require.False(t, fourth.conn.Surplus())
	_, err := second.client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	first = x.ask(first.client)

	for range surplus {
		r := x.ask(x.dial())
		require.True(t, r.conn.Surplus())
		defer close(r.release)
	}
	_, err = x.dial().Read(make([]byte, 1))
	require.Error(t, err, "the reserve is used up")
	require.Equal(t, 2+surplus, x.Len())
	x.answer(first)
	x.answer(fourth)
}

// What never sends a request gives way too, but not at once.
func TestConnectionLimitAndSilentConnections(t *testing.T) {
	t.Parallel()
	x := startLimited(t)
	silent := x.dial()
	await.True(t, func() bool { return x.Len() == 1 })
	busy, third := x.ask(x.dial()), x.ask(x.dial())
	require.True(t, third.conn.Surplus(), "the silent one is new")
	x.mu.Lock()
	for c := range x.conns {
		if c.state.Load() == stateNew {
			c.idleSince.Store(time.Now().Add(-2 * firstRequest).UnixNano())
		}
	}
	x.mu.Unlock()
	fourth := x.ask(x.dial())
	require.False(t, fourth.conn.Surplus())
	_, err := silent.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	for _, r := range []served{busy, third, fourth} {
		close(r.release)
	}
}

package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pair has the far ends of the two connections of a relay that runs until it ends by itself.
func pair(ctx context.Context) (browser, host net.Conn, ended chan struct{}) {
	browser, local := net.Pipe()
	remote, host := net.Pipe()
	ended = make(chan struct{})
	go func() { defer close(ended); relay(ctx, usual, local, bufio.NewReader(local), remote) }()
	return browser, host, ended
}

// a tunnel in which nobody speaks, one that goes on for long, and one that carries too much are closed on both sides.
func TestTunnelLimits(t *testing.T) {
	t.Parallel()
	hello := []byte{handshake, 3, 1}
	speak := func(c net.Conn, text []byte) error { _, err := c.Write(text); return err }
	hear := func(t *testing.T, c net.Conn) {
		t.Helper()
		_, err := io.ReadFull(c, make([]byte, len(hello)))
		require.NoError(t, err)
	}
	tests := map[string]struct {
		use  func(t *testing.T, browser, host net.Conn)
		took time.Duration
	}{
		"the browser says nothing": {func(*testing.T, net.Conn, net.Conn) {}, usual.idle},
		"both fall silent": {func(t *testing.T, browser, host net.Conn) {
			t.Helper()
			require.NoError(t, speak(browser, hello))
			hear(t, host)
			<-time.After(20 * time.Second)
			require.NoError(t, speak(host, hello))
			hear(t, browser)
		}, 20*time.Second + usual.idle},
		"one of them speaks": {func(t *testing.T, browser, host net.Conn) {
			t.Helper()
			require.NoError(t, speak(browser, hello))
			hear(t, host)
			for speak(host, hello) == nil {
				hear(t, browser)
				<-time.After(25 * time.Second)
			}
		}, 125 * time.Second}, // it was cut at 120 seconds, which the host notices when it speaks again
		"too much comes": {func(t *testing.T, browser, host net.Conn) {
			t.Helper()
			require.NoError(t, speak(browser, hello))
			hear(t, host)
			go func() { _, _ = io.Copy(io.Discard, browser) }()
			sent, block := 0, make([]byte, 64<<10)
			for speak(host, block) == nil {
				sent += len(block)
			}
			require.InDelta(t, usual.down, sent, 64<<10)
		}, 0},
		"too much is sent": {func(t *testing.T, browser, host net.Conn) {
			t.Helper()
			go func() { _, _ = io.Copy(io.Discard, host) }()
			sent, block := 0, make([]byte, 64<<10)
			block[0] = handshake
			for speak(browser, block) == nil {
				sent += len(block)
			}
			require.InDelta(t, usual.up, sent, 64<<10)
		}, 0},
		"the host leaves":    {func(_ *testing.T, _, host net.Conn) { _ = host.Close() }, 0},
		"the browser leaves": {func(_ *testing.T, browser, _ net.Conn) { _ = browser.Close() }, 0},
		"no TLS":             {func(t *testing.T, browser, _ net.Conn) { t.Helper(); require.NoError(t, speak(browser, []byte("GET"))) }, 0},
	}
	for name, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), usual.life)
			defer cancel()
			browser, host, ended := pair(ctx)
			began := time.Now()
			tt.use(t, browser, host)
			<-ended
			require.Equal(t, tt.took, time.Since(began), name)
			for _, c := range []net.Conn{browser, host} {
				_, err := c.Write([]byte("x"))
				require.ErrorIs(t, err, io.ErrClosedPipe)
			}
		})
	}
}

package transport

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/certtest"
)

// a client that speaks TLS and does not take the end of an idle connection keeps nobody waiting: neither a stop, which has its limit, nor who waits for the
// place of the connection.
func TestSlowGoodbye(t *testing.T) {
	t.Parallel()
	pair := certtest.New(t, 1)
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		s := NewServer(0, slog.New(slog.DiscardHandler))
		// Tickets would wait for a reader, too.
		c := &Conn{server: s, secure: tls.Server(here, &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true})}
		s.running.Add(1)
		s.conns[c] = struct{}{}
		client := tls.Client(there, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is not about trust
		shaken := make(chan error, 1)
		go func() { shaken <- client.HandshakeContext(t.Context()) }()
		require.NoError(t, c.secure.HandshakeContext(t.Context()))
		require.NoError(t, <-shaken)

		c.state.Store(stateIdle)
		s.closeIdle()
		require.Equal(t, 1, s.Len(), "the client has not taken it yet")
		_, err := io.ReadAll(client)
		require.NoError(t, err, "it is told")
		s.running.Wait()
		require.Zero(t, s.Len())
	})
}

package ingress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/certificate"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/certtest"
)

// setupTLS starts an ingress that speaks TLS with a certificate, and gives where its files are.
func setupTLS(t *testing.T, pair certtest.Pair, more ...certtest.Pair) (*gateway, certificate.Files) {
	t.Helper()
	dir := t.TempDir()
	files := certificate.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	pair.Write(t, files.Cert, files.Key)
	g := setup(t, func(c *ingress.Config) { c.TLS, c.Heartbeat = files, time.Hour })
	g.url = "https://" + g.addr
	trust := &tls.Config{RootCAs: certtest.Pool(append(more, pair)...), MinVersion: tls.VersionTLS12}
	transport := &http.Transport{TLSClientConfig: trust, DisableCompression: true}
	g.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	return g, files
}

// streams that run go on over the connection that they have, while new connections get the new certificate.
func TestCertificateChangesUnderStreams(t *testing.T) {
	t.Parallel()
	one, two := certtest.New(t, 1), certtest.New(t, 2)
	g, files := setupTLS(t, one, two)
	release := make(chan struct{})
	g.work(func(ctx context.Context, r *reply) {
		if !r.work.Request.Stream {
			echo(ctx, r)
			return
		}
		_ = r.head("text/event-stream")
		_ = r.send(ctx, "data: one\n\n")
		<-release
		_ = r.send(ctx, "data: [DONE]\n\n")
		_ = r.end()
	})
	const streams = 8
	open := make([]*http.Response, streams)
	for i := range open {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1/chat/completions", strings.NewReader(streamBody))
		require.NoError(t, err)
		open[i], err = g.client.Do(req) //nolint:bodyclose // below
		require.NoError(t, err)
		require.Equal(t, int64(1), open[i].TLS.PeerCertificates[0].SerialNumber.Int64())
		require.Equal(t, "HTTP/1.1", open[i].Proto)
	}
	require.Contains(t, g.do(http.MethodGet, "/metrics", nil).body,
		"hydrallm_ingress_certificate_expiry_timestamp_seconds "+strconv.FormatFloat(float64(open[0].TLS.PeerCertificates[0].NotAfter.Unix()), 'g', -1, 64)+"\n")
	two.Write(t, files.Cert, files.Key)
	shown := func() int64 {
		g.client.CloseIdleConnections()
		return g.chat(chatBody).TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	await.True(t, func() bool { return shown() == 2 })
	one.Write(t, files.Cert, files.Cert) // a key where the certificate should be
	await.True(t, func() bool { return strings.Contains(g.log.String(), "not usable") })
	require.Equal(t, int64(2), shown())
	close(release)
	for _, resp := range open {
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "data: one\n\ndata: [DONE]\n\n", string(body))
	}
}

// over TLS all is as without: a client that leaves is noticed, a large body is refused with an answer that arrives, connections are used again, a
// stop waits for what runs and says goodbye to what does not.
func TestTLSIsLikePlainHTTP(t *testing.T) {
	t.Parallel()
	g, _ := setupTLS(t, certtest.New(t, 1))
	gone := make(chan struct{}, 1)
	g.work(func(ctx context.Context, r *reply) {
		if !r.work.Request.Stream {
			echo(ctx, r)
			return
		}
		<-r.gone
		gone <- struct{}{}
	})
	require.Equal(t, http.StatusOK, g.chat(chatBody).StatusCode)
	require.Equal(t, http.StatusRequestEntityTooLarge, g.chat(strings.Repeat(" ", 33<<20)).StatusCode)
	port := g.addr[strings.LastIndexByte(g.addr, ':')+1:]
	require.NoError(t, process.Healthcheck(t.Context(), []string{port, "/healthz"}), "the program asks itself over TLS too")
	require.ErrorContains(t, process.Healthcheck(t.Context(), []string{port, "/readyz"}), "503")

	if runtime.GOOS == "linux" { // elsewhere it is noticed when something is written
		ctx, leave := context.WithCancel(t.Context())
		asked := make(chan error, 1)
		go func() {
			_, err := g.try(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(streamBody))
			asked <- err
		}()
		await.True(t, func() bool {
			return strings.Contains(g.do(http.MethodGet, "/metrics", nil).body, "hydrallm_ingress_in_flight 1\n")
		})
		leave()
		require.Error(t, await.Value(t, asked))
		await.Value(t, gone)
	}

	idle, err := tls.Dial("tcp", g.addr, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec,noctx // of this test
	require.NoError(t, err)
	defer idle.Close() //nolint:errcheck // only read
	_, err = io.WriteString(idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(idle)
	_, err = readAnswer(in)
	require.NoError(t, err)
	done := g.stopping(testWait)
	_, err = in.ReadByte()
	require.ErrorIs(t, err, io.EOF, "it is told, so that nobody may cut an answer unnoticed")
	require.NoError(t, await.Value(t, done))
}

// who speaks HTTP to the port gets to know what is wrong; nobody who says nothing, or nonsense, holds it up.
func TestPlainHTTPOnATLSPort(t *testing.T) {
	t.Parallel()
	g, _ := setupTLS(t, certtest.New(t, 1))
	resp, err := http.Get("http://" + g.addr + "/v1/models") //nolint:noctx // it answers or the test ends
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Contains(t, string(body), "https://")
	for _, text := range []string{"", "\x16\x03\x01", "nonsense\n", "SSH-2.0-x\r\n", strings.Repeat("\xff", 4096)} {
		conn, err := net.Dial("tcp", g.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, text)
		require.NoError(t, err)
	}
	require.Equal(t, http.StatusOK, g.do(http.MethodGet, "/healthz", nil).StatusCode)
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	begun := time.Now()
	require.NoError(t, g.ingress.Stop(ctx))
	require.Less(t, time.Since(begun), testWait)
}

// without its certificate it does not start, and the error says why.
func TestTLSNeedsItsFiles(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	i, err := ingress.New(ingress.Config{ID: "other", Addr: "127.0.0.1:0", TLS: certificate.Files{Cert: "/nowhere/cert.pem", Key: "/nowhere/key.pem"}},
		g.worker, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	require.ErrorContains(t, i.Start(t.Context()), "/nowhere/cert.pem")
}

package fetch_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/fetch"
	"hydrallm/services/enricher/internal/guard"
)

// fault checks what kind of failure err is.
func fault(t *testing.T, err error, want fetch.Kind) {
	t.Helper()
	failed, ok := errors.AsType[*fetch.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, want, failed.Kind, "%v", failed.Unwrap())
}

// local makes a fetcher that may read localhost.
func local() *fetch.Fetcher {
	return fetch.NewPatient(guard.New(guard.Config{AllowHosts: []string{"localhost"}}), fetch.Config{})
}

// serve starts a server and returns its address by name.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = silent()
	server.Start()
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
}

func silent() *log.Logger { return log.New(io.Discard, "", 0) }

// raw starts a server that answers the request of one connection with what handle writes, and returns its address by name.
func raw(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		if _, err := http.ReadRequest(newReader(c)); err == nil {
			handle(c)
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return "http://" + strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1) + "/"
}

func newReader(c net.Conn) *bufio.Reader { return bufio.NewReader(c) }

func gzipped(text string) []byte {
	return packed(text, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
}

func deflated(text string) []byte {
	return packed(text, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
}

func bare(text string) []byte {
	return packed(text, func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, flate.BestSpeed); return f })
}

func packed(text string, pack func(io.Writer) io.WriteCloser) []byte {
	var b bytes.Buffer
	w := pack(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

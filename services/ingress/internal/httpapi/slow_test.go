package httpapi

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"hydrallm/services/ingress/internal/auth"
	"hydrallm/services/ingress/internal/clientkey"
)

// fasthttp keeps the text of the Date header in a goroutine for the life of the process. It must not be born in a bubble.
func TestMain(m *testing.M) {
	_, _ = new(fasthttp.Response).WriteTo(io.Discard)
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// server gives the client's end of a connection to an interface without a pipeline.
func server(t *testing.T) net.Conn {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry(), func() int { return 0 })
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	api := New(Config{
		MaxBody: 32 << 20, Clients: auth.NewClients(nil, clientkey.NewBook(log), auth.Auto, auth.NewAdmin("", false, slog.New(slog.DiscardHandler))), Admin: auth.NewAdmin("", false, log), Stopping: func() bool { return false },
		Metrics: metrics, Log: log, Tracer: noop.NewTracerProvider().Tracer(""),
	})
	client, conn := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { _ = api.Server().ServeConn(conn) })
	t.Cleanup(func() {
		_ = client.Close()
		wg.Wait()
	})
	return client
}

const uploadHead = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n"

// A client that stalls or drips is dropped; one that is slow is not.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		first  string
		then   string
		every  time.Duration
		status int
		after  time.Duration
	}{
		"no request at all":       {"", "", time.Hour, http.StatusRequestTimeout, headerTime},
		"half a request line":     {"GET / HT", "", time.Hour, http.StatusRequestTimeout, headerTime},
		"headers drip":            {"GET / HTTP/1.1\r\nX: ", "x", time.Second, http.StatusRequestTimeout, headerTime},
		"no body":                 {uploadHead, "", time.Hour, http.StatusRequestTimeout, headerTime},
		"body stalls":             {uploadHead + strings.Repeat("x", 100_000), "", time.Hour, http.StatusRequestTimeout, 15 * time.Second},
		"body drips":              {uploadHead + "{", "x", time.Second, http.StatusRequestTimeout, 15 * time.Second},
		"chunks drip":             {strings.Replace(uploadHead, "Content-Length: 10000000", "Transfer-Encoding: chunked", 1), "1\r\nx\r\n", time.Second, http.StatusRequestTimeout, 15 * time.Second},
		"body is slow but comes":  {uploadHead, strings.Repeat("x", 5000), 10 * time.Second, http.StatusBadRequest, 2000 * 10 * time.Second},
		"body comes all at once":  {strings.Replace(uploadHead, "10000000", "1", 1) + "x", "", time.Hour, http.StatusBadRequest, 0},
		"request after the first": {"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET", "", time.Hour, http.StatusOK, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn := server(t)
				begin := time.Now()
				quit := make(chan struct{})
				var wg sync.WaitGroup
				defer wg.Wait()
				defer close(quit)
				wg.Go(func() {
					text := tt.first
					for {
						if _, err := io.WriteString(conn, text); err != nil {
							return
						}
						select {
						case <-quit:
							return
						case <-time.After(tt.every):
							text = tt.then
						}
					}
				})
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err)
				require.Equal(t, tt.status, resp.StatusCode)
				require.InDelta(t, tt.after.Seconds(), time.Since(begin).Seconds(), 1)
				require.NoError(t, errors.Join(conn.Close(), resp.Body.Close()))
			})
		})
	}
}

// A connection that is kept alive ends without a word.
func TestIdleConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := server(t)
		_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, errors.Join(err, resp.Body.Close()))
		begin := time.Now()
		_, err = in.ReadByte()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, idleTime, time.Since(begin))
	})
}

// no time limit cuts an answer while the client takes some of it now and then; a client that takes nothing is dropped.
func TestPatientWriter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		w := deadlineWriter{conn: conn}
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			buf := make([]byte, maxPiece)
			for range 100 {
				if _, err := io.ReadFull(client, buf); err != nil {
					t.Error(err)
				}
				<-time.After(50 * time.Second)
			}
		})
		begin := time.Now()
		require.NoError(t, w.write(conn, make([]byte, 100*maxPiece)))
		require.Greater(t, time.Since(begin), time.Hour)
		wg.Wait()
		begin = time.Now()
		require.ErrorIs(t, w.write(conn, []byte("x")), os.ErrDeadlineExceeded)
		require.LessOrEqual(t, time.Since(begin), writePause)
		require.NoError(t, errors.Join(client.Close(), conn.Close()))
	})
}

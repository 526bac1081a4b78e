package ingress_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkUnary is a request with a small JSON answer through the ingress, a real NATS server and a worker that answers at once.
func BenchmarkUnary(b *testing.B) { benchmark(b, chatBody, echo) }

// BenchmarkStream is a request with a stream of 64 events.
func BenchmarkStream(b *testing.B) {
	event := "data: " + strings.Repeat("x", 200) + "\n\n"
	benchmark(b, streamBody, func(ctx context.Context, r *reply) {
		_ = r.head("text/event-stream")
		for range 64 {
			_ = r.send(ctx, event)
		}
		_ = r.end()
	})
}

const parallelism = 16

func benchmark(b *testing.B, body string, handler func(context.Context, *reply)) {
	b.Helper()
	g := setup(b, nil)
	g.work(handler)
	request := fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	b.ReportAllocs()
	b.SetParallelism(parallelism)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", g.addr)
		require.NoError(b, err)
		defer conn.Close() //nolint:errcheck // only read
		in := bufio.NewReaderSize(conn, 64<<10)
		for pb.Next() {
			if _, err := conn.Write(request); err != nil {
				b.Error(err)
				return
			}
			if a, err := readAnswer(in); err != nil || a.StatusCode != http.StatusOK {
				b.Error(a.body, err)
				return
			}
		}
	})
}

package sessionwriter

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/bus"
	"hydrallm/shared/subject"
)

// Every line of a fact is either a record or a reason to bury the fact.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "\n\n", `{"request_id":"r"}`, "{\"request_id\":\"r\"}\r\n{", `[]`, `null`, `{"attempts":[{"status":1e99}]}`, `{"at":"0000-01-01T00:00:00Z"}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, usage bool) {
		fact, want := bus.Fact{Subject: subject.Log("routing"), Data: data}, 0
		if usage {
			fact.Subject = subject.UsageRecorded
		}
		for line := range bytes.Lines(data) {
			if len(bytes.TrimSpace(line)) > 0 {
				want++
			}
		}
		b := decode([]bus.Fact{fact})
		if got := len(b.usage) + len(b.logs) + len(b.poison); got != want {
			t.Fatalf("%d records and reasons of %q, want %d", got, data, want)
		}
	})
}

// BenchmarkWrite is the whole way of a batch of usage facts, one record each, from bytes to SQLite.
func BenchmarkWrite(b *testing.B) {
	db, err := store.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "hydrallm.db"))
	require.NoError(b, err)
	defer func() { require.NoError(b, db.Close()) }()
	m, err := newMetrics(prometheus.NewRegistry())
	require.NoError(b, err)
	w := &writer{store: db, database: &database{store: db, log: slog.New(slog.DiscardHandler), up: m.database}, log: slog.New(slog.DiscardHandler), metrics: m}
	rows := 0
	b.ReportAllocs()
	for b.Loop() {
		facts := make([]bus.Fact, defaultBatch)
		for i := range facts {
			facts[i] = bus.Fact{Subject: subject.UsageRecorded, Data: fmt.Appendf(nil, `{"request_id":"01JZXW%020d","endpoint":"chat.completions",`+
				`"model":"model-%d","provider":"groq","upstream":"groq-1","upstream_model":"llama-3.1-8b","key_index":2,"status":"success",`+
				`"routing_reason":"model_hint","stream":true,"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,"latency_ms":250,`+
				`"first_token_ms":120,"attempts":[{"delivery":1,"ordinal":1,"upstream":"groq-1","provider":"groq","model":"llama-3.1-8b","outcome":"success","status":200,"duration_ms":200,"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,"at":"2026-05-01T12:00:00.123Z"}],`+
				`"at":"2026-05-01T12:00:00.123Z"}`, rows, rows%7)}
			rows++
		}
		require.NoError(b, w.write(b.Context(), facts))
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

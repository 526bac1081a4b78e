//go:build unix

package store

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// batchSize is the batch of the service.
const batchSize = 400

// BenchmarkRecordUsage reports the cost of one row: time on the clock, and time of all processors of this process, which on PostgreSQL does
// not include the server.
func BenchmarkRecordUsage(b *testing.B) {
	for _, backend := range backends {
		b.Run(backend.name, func(b *testing.B) {
			s := openStore(b, backend.address(b))
			b.ReportAllocs()
			rows := 0
			begin := processorTime(b)
			for b.Loop() {
				batch := make([]contract.RequestRecord, batchSize)
				for i := range batch {
					batch[i] = usage(fmt.Sprintf("01JZXW%020d", rows))
					batch[i].UpstreamModel = fmt.Sprintf("model-%d", rows%7)
					rows++
				}
				_, err := s.RecordUsage(b.Context(), batch)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64((processorTime(b)-begin).Microseconds())/float64(rows), "cpu-µs/row")
		})
	}
}

func BenchmarkRecordLogs(b *testing.B) {
	for _, backend := range backends {
		b.Run(backend.name, func(b *testing.B) {
			s := openStore(b, backend.address(b))
			b.ReportAllocs()
			rows := 0
			begin := processorTime(b)
			for b.Loop() {
				batch := make([]contract.Log, batchSize)
				for i := range batch {
					batch[i] = event(rows)
					rows++
				}
				_, err := s.RecordLogs(b.Context(), batch)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64((processorTime(b)-begin).Microseconds())/float64(rows), "cpu-µs/row")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

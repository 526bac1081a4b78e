//go:build linux

package reader_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/reader"
)

// BenchmarkRead reads pages with 1, 2 and 4 enrichers in one process, each with a browser of its own and four pages at a time. It says how many pages
// they read in a second and what it costs in memory: most of this process, and of the processes of the browsers, where what they share is counted once.
func BenchmarkRead(b *testing.B) {
	site := serveSite(b)
	for _, path := range []string{"/plain", "/scripts"} {
		for _, enrichers := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("%s/enrichers=%d", path[1:], enrichers), func(b *testing.B) {
				g := guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}})
				all := make([]*enricher, enrichers)
				for i := range all {
					all[i] = startEnricher(b, g, reader.Auto, site+"/plain")
				}
				var own, browsers float64
				var looking sync.WaitGroup
				done := make(chan struct{})
				looking.Go(func() {
					for ticks := time.NewTicker(500 * time.Millisecond); ; {
						together := 0.0
						for _, pid := range browserProcesses(b) {
							together += proportional(b, pid)
						}
						own, browsers = max(own, proportional(b, os.Getpid())), max(browsers, together)
						select {
						case <-ticks.C:
						case <-done:
							ticks.Stop()
							return
						}
					}
				})
				var next atomic.Int32
				b.SetParallelism(max(1, 4*enrichers/runtime.GOMAXPROCS(0)))
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					e := all[int(next.Add(1))%enrichers]
					for pb.Next() {
						if doc, err := e.Read(b.Context(), site+path); err != nil || !strings.Contains(doc.Text, "harbour") {
							b.Error("no text:", err)
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
				close(done)
				looking.Wait()
				b.ReportMetric(own, "MB-process")
				b.ReportMetric(browsers, "MB-browsers")
			})
		}
	}
}

// proportional gives the memory of a process in MB, with its share of what it shares with others.
func proportional(tb testing.TB, pid int) float64 {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0 // it has ended
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
			kilobytes, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				tb.Error(err)
			}
			return kilobytes / 1024
		}
	}
	return 0
}

// browserProcesses gives the processes of the groups that children of this process lead.
func browserProcesses(tb testing.TB) (pids []int) {
	tb.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		tb.Fatal(err)
	}
	groups := map[string][]int{}
	var leaders []string
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		pid := filepath.Base(filepath.Dir(path))
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		fields := strings.Fields(string(rest))
		if len(fields) < 3 {
			continue
		}
		n, err := strconv.Atoi(pid)
		if err != nil {
			tb.Fatal(err)
		}
		groups[fields[2]] = append(groups[fields[2]], n)
		if fields[1] == strconv.Itoa(os.Getpid()) && fields[2] == pid {
			leaders = append(leaders, pid)
		}
	}
	for _, leader := range leaders {
		pids = append(pids, groups[leader]...)
	}
	return pids
}

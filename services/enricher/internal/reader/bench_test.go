//go:build linux

package reader_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/reader"
)

// BenchmarkRead reads pages with 1, 2 and 4 enrichers in one process, each with a browser of its own and four pages at a time. It says how many pages
// they read in a second and what it costs in memory: of this process, and of the processes of the browsers, where what they share is counted once.
func BenchmarkRead(b *testing.B) {
	site := serveSite(b)
	for _, path := range []string{"/plain", "/scripts"} {
		for _, enrichers := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("%s/enrichers=%d", path[1:], enrichers), func(b *testing.B) {
				g := guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}})
				pages := make(chan string)
				var working sync.WaitGroup
				for range enrichers {
					e := startEnricher(b, g, reader.Auto, site+"/plain")
					for range 4 {
						working.Go(func() {
							for address := range pages {
								if doc, err := e.Read(b.Context(), address); err != nil || !strings.Contains(doc.Text, "harbour") {
									b.Error(err)
								}
							}
						})
					}
				}
				begin := time.Now()
				for b.Loop() {
					pages <- site + path
				}
				own, browsers := proportional(b, os.Getpid()), 0.0
				for _, pid := range browserProcesses(b) {
					browsers += proportional(b, pid)
				}
				close(pages)
				working.Wait()
				b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "pages/s")
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

package binaries

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/processtest"
)

// initLine is what GODEBUG=inittrace=1 says of each package that does something before main.
var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes, \d+ allocs$`)

// what only few requests need is not built at each start. One package of a dependency can cost more than all of the gateway, so this counts what
// every package allocates before main.
func TestPackagesAllocateLittleAtTheStart(t *testing.T) {
	t.Parallel()
	const most, all = 2 << 20, 12 << 20
	cmd := exec.Command(processtest.AllInOne(t), "--help")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	sum := 0
	for _, m := range initLine.FindAllStringSubmatch(string(out), -1) {
		n, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		require.LessOrEqual(t, n, most, m[1])
		sum += n
	}
	require.Positive(t, sum)
	require.LessOrEqual(t, sum, all)
}

// BenchmarkStreams tells what open streams cost in resident memory, and how long it takes until the process has no more than a fifth above what it had
// when it was idle. It takes minutes: -benchtime 1x.
func BenchmarkStreams(b *testing.B) {
	const streams, limit = 400, 3 * time.Minute
	dir, addr := b.TempDir(), freeport.Addr(b)
	upstream := fakellm.Start(b)
	upstream.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Stream(strings.Fields(strings.Repeat("word ", 50))...).Gap(100 * time.Millisecond)
	})
	gateway := processtest.Run(b, processtest.AllInOne(b), alone(b, dir, addr, upstream.URL()))
	gateway.AwaitReady(b, addr)
	time.Sleep(2 * quietTime) //nolint:forbidigo // a benchmark of what a process does with real time
	idle := resident(b, gateway.PID())
	for b.Loop() {
		var done sync.WaitGroup
		var most float64
		for range streams {
			done.Go(func() {
				resp, err := http.Post("http://"+addr+"/v1/chat/completions", "application/json", //nolint:noctx // it ends with the gateway
					strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
				if err != nil {
					b.Error(err)
					return
				}
				defer resp.Body.Close() //nolint:errcheck // it has been read
				_, _ = io.Copy(io.Discard, resp.Body)
			})
		}
		ended := make(chan struct{})
		go func() {
			done.Wait()
			close(ended)
		}()
		for running := true; running; {
			select {
			case <-ended:
				running = false
			case <-time.After(100 * time.Millisecond):
				most = max(most, resident(b, gateway.PID()))
			}
		}
		http.DefaultClient.CloseIdleConnections()
		end := time.Now()
		for resident(b, gateway.PID()) > idle*1.2 && time.Since(end) < limit {
			time.Sleep(time.Second) //nolint:forbidigo // see above
		}
		b.ReportMetric(idle/(1<<20), "MiB-idle")
		b.ReportMetric((most-idle)/streams/(1<<10), "KiB/stream")
		b.ReportMetric(time.Since(end).Seconds(), "s-until-idle")
	}
}

// quietTime is how long nothing may happen until a process gives memory back.
const quietTime = 10 * time.Second

// resident is the resident memory of a process, in bytes.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Skip("this system does not tell")
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(data))[1], 64)
	require.NoError(b, err)
	return pages * float64(os.Getpagesize())
}

package process

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"hydrallm/shared/telemetry"
)

// How the heap may grow before it is collected, in percent of what is in use. A gateway keeps little and allocates much: with Go's 100 much of its CPU
// goes into collecting a few megabytes. When it keeps much, as for many clients that read slowly, a percentage of it is a lot. Twice the headroom takes
// 35 MB more under load and some 5 % less CPU for a small request; half of it the reverse.
const (
	maxGrowth = 200
	minGrowth = 50
	headroom  = 32 << 20 // bytes of growth between the two
)

// When memory that a burst has left goes back to the system.
const (
	lookPeriod  = time.Second
	quietPeriod = 10 * time.Second
	spareBytes  = 8 << 20 // so much may lie about; and who allocates less in a quietPeriod is quiet
)

// heap is what the runtime says of memory, in bytes.
type heap struct {
	live      uint64 // found in use by the last collection
	spare     uint64 // garbage, and free without being given back
	allocated uint64 // since the start
}

func readHeap() heap {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(s)
	live, objects, free := s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Uint64()
	return heap{live: live, spare: objects - min(live, objects) + free, allocated: s[3].Value.Uint64()}
}

// keeper adapts the collector to what is in use, and gives memory back when there is nothing to do.
type keeper struct {
	read      func() heap
	setGrowth func(percent int) // nil leaves the collector alone
	release   func()

	growth int    // percent, as set last
	looks  int    // since the last quiet period began
	before uint64 // bytes allocated when it began
}

func (k *keeper) run(ctx context.Context) {
	ticker := time.NewTicker(lookPeriod)
	defer ticker.Stop()
	for {
		k.look()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (k *keeper) look() {
	h := k.read()
	if g := growth(h.live); k.setGrowth != nil && (g-k.growth)*(g-k.growth) > k.growth*k.growth/100 { // setting it stops the world for a moment
		k.growth = g
		k.setGrowth(g)
	}
	if k.looks++; k.looks < int(quietPeriod/lookPeriod) {
		return
	}
	if h.allocated-k.before < spareBytes && h.spare > spareBytes {
		k.release()
	}
	k.looks, k.before = 0, h.allocated
}

// growth is how many percent the heap may grow by when live bytes are in use.
func growth(live uint64) int {
	return int(min(max(headroom*100/max(live, 1), minGrowth), maxGrowth))
}

// keepMemory looks after the memory of the process until stop is called. GOGC in the environment means that the collector is left alone.
func keepMemory(ctx context.Context, log *slog.Logger) (stop func()) {
	limitMemory(ctx, log)
	k := &keeper{read: readHeap, release: debug.FreeOSMemory}
	if os.Getenv("GOGC") == "" {
		k.setGrowth = func(percent int) { debug.SetGCPercent(percent) }
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { k.run(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// limitMemory has the collector keep the process within nine tenths of what its control group may use, unless GOMEMLIMIT says another limit.
func limitMemory(ctx context.Context, log *slog.Logger) {
	limit, err := memlimit.Set()
	text := "none"
	if limit < math.MaxInt64 {
		text = fmt.Sprintf("%dMiB", limit>>20)
	}
	args := []any{"limit", text}
	if err != nil { // such as a system without control groups
		args = append(args, "reason", err.Error())
	}
	telemetry.Event(ctx, log, slog.LevelInfo, "memory:", args...)
}

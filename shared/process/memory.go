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

// How the heap may grow before it is collected. A gateway keeps little and allocates much: with Go's 100 % of what is in use, much of its CPU goes into
// collecting a few megabytes. When it keeps much, as for many clients that read slowly, a percentage of it is a lot. Who allocates fast, as large bodies
// do, gets more room, so that there are no more than some collections in a second: each costs the same, however much garbage there is.
const (
	headroom    = 32 << 20 // bytes of growth
	maxHeadroom = 48 << 20 // of who allocates fast
	perSecond   = 5        // collections in a second, from headroom to maxHeadroom
	maxGrowth   = 200      // percent of what is in use, for headroom
	minGrowth   = 50       // percent of what is in use, whatever that is
	leastLive   = 4 << 20  // counts as in use in any case: before the first collection nothing is known to be, and a percentage of that would end all collecting
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
	last   uint64 // bytes allocated when it looked last
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
	g := growth(h.live, h.allocated-k.last)
	k.last = h.allocated
	if k.setGrowth != nil && (g-k.growth)*(g-k.growth) > k.growth*k.growth/100 { // setting it stops the world for a moment
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

// growth is how many percent the heap may grow by when live bytes are in use and rate bytes are allocated in a second.
func growth(live, rate uint64) int {
	live = max(live, leastLive)
	room := uint64(headroom)
	if live < headroom*100/maxGrowth {
		room = live * maxGrowth / 100
	}
	room = max(room, min(rate/perSecond, maxHeadroom))
	return int(max(room*100/live, minGrowth))
}

// keepMemory looks after the memory of the process until stop is called. GOGC in the environment means that the collector is left alone.
func keepMemory(ctx context.Context, log *slog.Logger) (stop func()) {
	limitMemory(ctx, log)
	k := &keeper{read: readHeap, release: func() { debug.FreeOSMemory(); unmapFiles() }}
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

package browser

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-rod/rod/lib/proto"
)

const (
	maxMemory   = 512 << 20 // bytes that one page may have in memory
	memoryPause = 200 * time.Millisecond
)

// limitMemory kills processes of pages that have too much in memory, until Chromium ends. It looks while a page is open, and finds out so, too, when
// Chromium does not answer any more.
func (p *process) limitMemory(answer time.Duration) {
	look := time.NewTicker(memoryPause)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-p.ctx.Done():
			return
		}
		if !p.listening() {
			continue
		}
		ctx, cancel := context.WithTimeoutCause(p.ctx, answer, errHung)
		var all proto.SystemInfoGetProcessInfoResult
		err := p.root().call(ctx, proto.SystemInfoGetProcessInfo{}, &all)
		cancel()
		if err != nil {
			p.judge(err)
			continue
		}
		for _, info := range all.ProcessInfo {
			if info.Type == "renderer" && resident(info.ID) > maxMemory {
				kill(info.ID) // its page learns that it has crashed
			}
		}
	}
}

// resident gives the bytes of a process in memory, 0 if that can't be known.
func resident(pid int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return pages * os.Getpagesize()
}

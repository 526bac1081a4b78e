package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// unmapFiles takes the pages of the program's file out of the memory of the process. They stay in the cache of the system, from where those that are used come back,
// at the price of a minor fault for every sixteen; what only the start needed does not. Mappings that can be written, or of which a page was, are left alone.
func unmapFiles() {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return // a system without it
	}
	for _, m := range cleanFiles(smaps) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.begin, m.end-m.begin, syscall.MADV_DONTNEED) // nothing hangs on it
	}
}

// mapping is a range of addresses.
type mapping struct{ begin, end uintptr }

// cleanFiles gives the private mappings of files in which nothing can be or was written, from /proc/PID/smaps (proc(5)).
func cleanFiles(smaps []byte) []mapping {
	var clean []mapping
	var current mapping
	candidate := false
	for line := range bytes.Lines(smaps) {
		fields := bytes.Fields(line)
		switch {
		case len(fields) >= 5 && bytes.IndexByte(fields[0], '-') > 0: // begin-end rwxp offset device inode path
			candidate = len(fields) >= 6 && fields[5][0] == '/' && len(fields[1]) == 4 && fields[1][1] == '-' && fields[1][3] == 'p'
			begin, end, _ := bytes.Cut(fields[0], []byte{'-'})
			var errs [2]error
			current.begin, errs[0] = address(begin)
			current.end, errs[1] = address(end)
			candidate = candidate && errs == [2]error{}
		case candidate && len(fields) == 3 && string(fields[0]) == "Anonymous:": // copies of pages, which a write made
			if string(fields[1]) == "0" {
				clean = append(clean, current)
			}
			candidate = false
		}
	}
	return clean
}

func address(hex []byte) (uintptr, error) {
	n, err := strconv.ParseUint(string(hex), 16, strconv.IntSize)
	return uintptr(n), err
}

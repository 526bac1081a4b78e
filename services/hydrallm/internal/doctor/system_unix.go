//go:build linux || darwin

package doctor

import (
	"os"

	"golang.org/x/sys/unix"
)

// writable says whether this process may write to a directory. It does not try.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

// freeBytes is how much this process may still write to the file system of a directory.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// TerminalWidth is the number of columns of a terminal; 0 when it is none.
func TerminalWidth(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

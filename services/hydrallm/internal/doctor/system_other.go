//go:build !linux && !darwin

package doctor

import (
	"errors"
	"os"
)

// writable can't be told here without a write.
func writable(string) error { return nil }

func freeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }

// TerminalWidth is not known here.
func TerminalWidth(*os.File) int { return 0 }

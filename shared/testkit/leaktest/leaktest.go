// Package leaktest fails a test binary that leaves goroutines behind.
package leaktest

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, looks for goroutines that nobody stopped, and then ends what the tests shared.
func Main(m *testing.M, ends ...func() error) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, end := range ends {
			if err := end(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
		os.Exit(code)
	}))
}

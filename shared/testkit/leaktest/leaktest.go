// Package leaktest fails a test binary that leaves goroutines behind.
package leaktest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and then looks for goroutines that nobody stopped.
func Main(m *testing.M) { goleak.VerifyTestMain(m) }

// Package await waits in tests for what other goroutines do, with more patience than a machine with too much to do needs.
package await

import (
	"testing"
	"time"
)

// Limit is how long something may take before a test fails. It says nothing about how fast the code is: it is long for the sake of slow machines, and a
// test that succeeds does not wait for it.
const Limit = 2 * time.Minute

// Value gives the next value of a channel.
func Value[T any](tb testing.TB, ch <-chan T) T {
	tb.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(Limit):
		tb.Fatal("nothing arrived")
		panic("unreachable")
	}
}

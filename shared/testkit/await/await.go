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

// maxPause is the longest time between two looks.
const maxPause = 32 * time.Millisecond

// True waits until ok gives true; what, which is printed as by fmt.Sprintln, tells what did not come true. ok runs in the goroutine of the test, so that
// it may fail the test, and not beyond its end.
func True(tb testing.TB, ok func() bool, what ...any) {
	tb.Helper()
	end := time.Now().Add(Limit)
	for pause := time.Millisecond; !ok(); pause = min(2*pause, maxPause) {
		if time.Now().After(end) {
			tb.Fatal(append([]any{"waited in vain:"}, what...)...)
		}
		<-time.After(pause)
	}
}

package breaker

import "time"

// tally counts failures by the rule of the configuration. Times are readings of the breaker's clock and never decrease.
type tally struct {
	cfg   Config
	row   int             // failures since the last success
	times []time.Duration // of the last failures inside the window, at most cfg.Failures
}

// fail records a failure and tells whether the threshold is reached.
func (t *tally) fail(now time.Duration) (tripped bool) {
	if t.cfg.Consecutive > 0 {
		t.row = min(t.row+1, t.cfg.Consecutive)
		return t.row == t.cfg.Consecutive
	}
	t.times = append(t.times[t.expired(now):], now)
	if len(t.times) > t.cfg.Failures {
		t.times = t.times[1:]
	}
	return len(t.times) == t.cfg.Failures
}

func (t *tally) succeed() { t.row = 0 }

// failures is how many count at this time.
func (t *tally) failures(now time.Duration) int {
	if t.cfg.Consecutive > 0 {
		return t.row
	}
	return len(t.times) - t.expired(now)
}

// expired is how many of the oldest failures have left the window.
func (t *tally) expired(now time.Duration) int {
	n := 0
	for n < len(t.times) && now-t.times[n] >= t.cfg.Window {
		n++
	}
	return n
}

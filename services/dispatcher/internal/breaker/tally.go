package breaker

import "time"

// tally counts failures by the rule of the configuration. Times are readings of the breaker's clock and never decrease.
type tally struct {
	cfg   Config
	row   int             // failures since the last success
	times []time.Duration // of the last failures inside the window, at most cfg.Failures

	// Of the last failures so many stated how long the upstream wants to be left alone, and the longest of that ends then.
	stated int
	until  time.Duration
}

// fail records a failure and tells whether the threshold is reached. wait is what the upstream stated, 0 for nothing.
func (t *tally) fail(now, wait time.Duration) (tripped bool) {
	if wait > 0 {
		t.stated, t.until = t.stated+1, max(t.until, now+wait)
	} else {
		t.stated, t.until = 0, 0
	}
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

// openFor is how long an opening by these failures lasts: no longer than all of them said that the upstream wants to be left alone.
func (t *tally) openFor(now time.Duration) time.Duration {
	if t.stated < t.failures(now) {
		return t.cfg.OpenFor
	}
	return min(t.until-now, t.cfg.OpenFor)
}

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

package breaker

import (
	"errors"
	"time"
)

// Config is what one class of channels uses. Either Consecutive is set, or Failures together with Window.
type Config struct {
	Consecutive int           // so many failures in a row open; a success in between starts the count anew
	Failures    int           // so many failures inside Window open; successes change nothing
	Window      time.Duration // a failure of exactly this age is forgotten
	OpenFor     time.Duration // counted from the last failure; shorter where the failures state so
	HalfOpen    bool          // after OpenFor one probe decides; otherwise the channel is simply closed again
}

// Errors of a configuration.
var (
	ErrThreshold = errors.New("breaker needs either consecutive or failures with a window")
	ErrOpenFor   = errors.New("breaker needs a positive open_for")
)

// Validate reports everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	row, window := c.Consecutive > 0, c.Failures > 0 && c.Window > 0
	if row == window || c.Consecutive < 0 || c.Failures < 0 || c.Window < 0 {
		errs = append(errs, ErrThreshold)
	}
	if c.OpenFor <= 0 {
		errs = append(errs, ErrOpenFor)
	}
	return errors.Join(errs...)
}

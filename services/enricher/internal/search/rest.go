package search

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// When an engine rests. An engine that takes the gateway for a bot does so for about an hour, and asking it again makes it longer.
const (
	enough        = 8 // strikes in a row; a failure is one, a challenge two
	failureRest   = 30 * time.Second
	challengeRest = 10 * time.Minute
)

var (
	// errChallenge says that an engine wants proof that a person asks.
	errChallenge = errors.New("it takes the gateway for a bot")
	errSlow      = errors.New("it did not answer in time")
)

// rest is how an engine fared lately. The zero value is ready for use.
type rest struct {
	mu      sync.Mutex
	strikes int
	until   time.Time
	reason  error // of the last failure
}

// check gives an error while the engine rests.
func (s *rest) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := time.Until(s.until); left > 0 {
		return fmt.Errorf("it rests for %s: %w", left.Round(time.Second), s.reason)
	}
	return nil
}

// note counts how a call ended. After a rest, one more failure begins the next one.
func (s *rest) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.strikes, s.reason = 0, nil
		return
	}
	pause := failureRest
	s.strikes, s.reason = min(s.strikes+1, enough), err
	if errors.Is(err, errChallenge) {
		pause = challengeRest
		s.strikes = min(s.strikes+1, enough)
	}
	if s.strikes == enough {
		s.until = time.Now().Add(pause)
	}
}

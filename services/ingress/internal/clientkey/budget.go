package clientkey

import (
	"context"
	"sync"
	"time"

	"hydrallm/shared/query"
)

// Usage tells what clients have used; the session writer does.
type Usage func(ctx context.Context, clients []query.ClientSince) ([]query.ClientUsage, error)

// spending is what a key has used of its budget. The database knows it; what this ingress hears of before is added here. Both only grow within a period,
// and each is at most what was used, so that the larger one is nearer to it.
type spending struct {
	mu      sync.Mutex
	period  Period
	from    time.Time // of the period that is counted; zero = none yet
	to      time.Time
	tokens  int64
	nanos   int64
	known   bool          // the database has told, or nothing was used yet
	asked   time.Time     // when it was asked last, or was to be
	asking  chan struct{} // closed when who asks has an answer; nil = nobody asks
	touched bool          // used since the database was asked last
}

// askAgain is how long a database that did not answer is left alone.
const askAgain = 5 * time.Second

// askLimit bounds the wait for the database.
const askLimit = 2 * time.Second

// roll begins the period of now. The caller holds mu.
func (s *spending) roll(p Period, now time.Time, zone *time.Location) {
	if s.period == p && now.Before(s.to) && !now.Before(s.from) {
		return
	}
	from, to := p.Bounds(now, zone)
	// What follows a period that was counted begins with nothing; of what went before the database has to be asked.
	s.known = s.period == p && s.known && from.Equal(s.to)
	s.period, s.from, s.to, s.tokens, s.nanos, s.asked = p, from, to, 0, 0, time.Time{}
}

// add takes in what a request used.
func (s *spending) add(tokens, nanos int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens += tokens
	s.nanos += nanos
	s.touched = true
}

// told takes in what the database says of a period.
func (s *spending) told(from time.Time, u query.ClientUsage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from.Equal(from) {
		s.tokens, s.nanos, s.known = max(s.tokens, u.Tokens), max(s.nanos, u.CostNanos), true
	}
}

// used is what counts for a budget. The caller holds mu.
func (s *spending) used(b *Budget) float64 {
	if b.Unit == Money {
		return float64(s.nanos) / nanosPerUnit
	}
	return float64(s.tokens)
}

const nanosPerUnit = 1e9

// check says whether the budget of a key has something left, and if not, how long that will be so. It waits only for the first answer of the database;
// while there is none, what is known counts.
func (s *spending) check(ctx context.Context, id string, b *Budget, zone *time.Location, ask Usage) (left bool, reset time.Duration) {
	for {
		now := time.Now()
		s.mu.Lock()
		s.roll(b.Period, now, zone)
		s.touched = true
		if s.known || s.asking == nil && now.Sub(s.asked) < askAgain {
			left, reset = s.used(b) < b.Amount, s.to.Sub(now)
			s.mu.Unlock()
			return left, reset
		}
		others, from := s.asking, s.from
		if others == nil {
			s.asking, s.asked = make(chan struct{}), now
		}
		s.mu.Unlock()
		if others != nil {
			<-others // it has its limit of time
			continue
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
		usage, err := ask(limited, []query.ClientSince{{Principal: id, Since: from}})
		cancel()
		if err == nil && len(usage) == 1 {
			s.told(from, usage[0])
		}
		s.mu.Lock()
		close(s.asking)
		s.asking = nil
		s.mu.Unlock()
	}
}

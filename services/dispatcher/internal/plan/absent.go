package plan

import (
	"sync"
	"time"

	"hydrallm/shared/modelindex"
)

// How long a model counts as missing after its provider said so: while there is another, and when it is all that could be asked for.
const (
	absentFor   = time.Hour
	absentAlone = time.Minute
)

// absent remembers the models that providers turned out not to have. The zero value is ready. It stays small: the gateway chooses few
// different models.
type absent struct {
	mu    sync.Mutex
	since map[[2]string]time.Time
}

func (a *absent) note(provider, model string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for key, since := range a.since {
		if now.Sub(since) >= absentFor {
			delete(a.since, key)
		}
	}
	if a.since == nil {
		a.since = map[[2]string]time.Time{}
	}
	a.since[[2]string{provider, model}] = now
}

// is says whether a model counts as missing, for the given time at most. A list of the provider that is newer than its refusal and has the
// model knows better.
func (a *absent) is(l modelindex.Listing, provider, model string, within time.Duration) bool {
	a.mu.Lock()
	since, noted := a.since[[2]string{provider, model}]
	a.mu.Unlock()
	if !noted || time.Since(since) >= within {
		return false
	}
	_, listed := l.Model(model)
	return !listed || !l.At.After(since)
}

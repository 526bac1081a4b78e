package plan

import (
	"sync"
	"time"
)

// absentFor is how long a model counts as missing after its provider said so; discovery may know better by then.
const absentFor = time.Hour

// absent remembers the models that providers turned out not to have. The zero value is ready. It stays small: the gateway chooses few
// different models.
type absent struct {
	mu    sync.Mutex
	until map[[2]string]time.Time
}

func (a *absent) note(provider, model string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for key, until := range a.until {
		if !until.After(now) {
			delete(a.until, key)
		}
	}
	if a.until == nil {
		a.until = map[[2]string]time.Time{}
	}
	a.until[[2]string{provider, model}] = now.Add(absentFor)
}

func (a *absent) is(provider, model string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.until[[2]string{provider, model}].After(time.Now())
}

package plan

import (
	"maps"
	"sync"
	"time"

	"hydrallm/shared/contract"
)

// lacksFor is how long it counts that a model refused what a request needs. Providers give models new abilities, if seldom.
const lacksFor = time.Hour

// lacks remembers the models that refused a request for what it needs, of which no list told. The zero value is ready. It stays small: the gateway
// chooses few different models.
type lacks struct {
	mu    sync.Mutex
	noted map[refusal]time.Time
}

// refusal is that of a request which needs this of a model.
type refusal struct {
	provider, model string
	needs           contract.Features
}

func (l *lacks) note(provider, model string, needs contract.Features) {
	if needs == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(l.noted, func(_ refusal, at time.Time) bool { return now.Sub(at) >= lacksFor })
	if l.noted == nil {
		l.noted = map[refusal]time.Time{}
	}
	l.noted[refusal{provider, model, needs}] = now
}

// is says whether the model refused a request that needs no more than this one.
func (l *lacks) is(provider, model string, needs contract.Features) bool {
	if needs == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for r, at := range l.noted {
		if r.provider == provider && r.model == model && needs.Has(r.needs) && time.Since(at) < lacksFor {
			return true
		}
	}
	return false
}

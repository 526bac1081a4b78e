package plan

import (
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
	noted map[[2]string]refusedNeeds // by provider and model
}

// refusedNeeds are those of a request that was refused.
type refusedNeeds struct {
	needs contract.Features
	at    time.Time
}

func (l *lacks) note(provider, model string, needs contract.Features) {
	if needs == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for key, r := range l.noted {
		if now.Sub(r.at) >= lacksFor {
			delete(l.noted, key)
		}
	}
	if l.noted == nil {
		l.noted = map[[2]string]refusedNeeds{}
	}
	l.noted[[2]string{provider, model}] = refusedNeeds{needs, now}
}

// is says whether the model refused a request that needs no more than this one.
func (l *lacks) is(provider, model string, needs contract.Features) bool {
	if needs == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r, noted := l.noted[[2]string{provider, model}]
	return noted && needs.Has(r.needs) && time.Since(r.at) < lacksFor
}

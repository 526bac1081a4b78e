package dispatcher

import (
	"strings"
	"sync"
	"sync/atomic"

	"hydrallm/shared/config"
)

// secrets removes known secrets from text that leaves the gateway. It is safe for concurrent use.
type secrets struct {
	replacer atomic.Pointer[strings.Replacer]

	mu    sync.Mutex
	pairs []string
}

// shortestSecret is the length of those that are removed: shorter ones would garble ordinary words.
const shortestSecret = 6

func newSecrets(cfg *config.Config) *secrets {
	s := &secrets{}
	s.add(cfg.Secrets()...)
	return s
}

// add takes in secrets that came later.
func (s *secrets) add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if len(v) >= shortestSecret {
			s.pairs = append(s.pairs, v, "[redacted]")
		}
	}
	s.replacer.Store(strings.NewReplacer(s.pairs...))
}

// Replace gives the text without the secrets: not even their beginnings are left, since the text may go to anybody.
func (s *secrets) Replace(text string) string { return s.replacer.Load().Replace(text) }

package dispatcher

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"hydrallm/shared/config"
)

// secrets removes known secrets from text that leaves the gateway. It is safe for concurrent use.
type secrets struct {
	mu    sync.Mutex // held by who adds
	known atomic.Pointer[knownSecrets]
}

// knownSecrets is what is known at one time. It does not change.
type knownSecrets struct {
	values   []string
	replacer *strings.Replacer
}

func newSecrets(cfg *config.Config) *secrets {
	s := &secrets{}
	s.known.Store(&knownSecrets{})
	s.add(cfg.Secrets()...)
	return s
}

// add takes in secrets that came later.
func (s *secrets) add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &knownSecrets{values: slices.Clone(s.known.Load().values)}
	for _, v := range values {
		if len(v) >= config.ShortestSecret && !slices.Contains(k.values, v) {
			k.values = append(k.values, v)
		}
	}
	k.replacer = config.Redactor(k.values)
	s.known.Store(k)
}

// Replace gives the text without the secrets: neither their beginnings are left nor pieces of them between which a provider has masked the rest,
// since the text may go to anybody.
func (s *secrets) Replace(text string) string {
	k := s.known.Load()
	if !slices.ContainsFunc(maskings, func(m string) bool { return strings.Contains(text, m) }) {
		return k.replacer.Replace(text)
	}
	return masked.ReplaceAllStringFunc(k.replacer.Replace(text), func(word string) string {
		pieces := masked.FindStringSubmatch(word)
		if slices.ContainsFunc(k.values, func(secret string) bool {
			return len(pieces[1]) >= shortestPiece && strings.HasPrefix(secret, pieces[1]) || len(pieces[2]) >= shortestPiece && strings.HasSuffix(secret, pieces[2])
		}) {
			return config.Redacted
		}
		return word
	})
}

// masked is a word whose middle can't be read, as providers quote keys: "sk-ab***wxyz", "abcd...wxyz".
var masked = regexp.MustCompile(`([A-Za-z0-9_-]*)(?:\*{2,}|\.{3,}|…|•{2,})([A-Za-z0-9_-]*)`)

// maskings are what masked has in its middle at least. Looking for them is a fraction of what the expression costs.
var maskings = []string{"**", "...", "…", "••"}

// shortestPiece is the length of the pieces of masked secrets that are removed.
const shortestPiece = 2

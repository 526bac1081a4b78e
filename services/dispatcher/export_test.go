package dispatcher

import (
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
)

// Store is the store of slots and dialogues on a bucket.
type Store = store

// NewStore gives the store on a bucket.
func NewStore(b *bus.Bucket) Store { return store{b} }

// Spoken says whether a dispatcher can speak a dialect of the configuration.
func Spoken(word string) bool { return kinds[word].make != nil }

// Kinds is the number of dialects that a dispatcher can speak.
func Kinds() int { return len(kinds) }

// AddDialect is what it takes to have one more. It comes before any configuration is read.
func AddDialect(word string, known config.Dialect, t dialect.Translator) {
	config.Dialects[word], kinds[word] = known, kind{make: func(c dialect.Client, _ []string) dialect.Dialect {
		return dialect.Translated{Client: c, Translator: t}
	}}
}

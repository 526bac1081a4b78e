package discover

import (
	"context"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/modelindex"
)

// Bounds of a listing.
const (
	maxModels = 5000
	maxID     = 512
	maxName   = 256
)

// List asks a provider which models the key may use, in the order of the provider. What the provider itself says to be neither for chat
// nor for embeddings is left out; the tiers are not set. key may be empty.
//
// The error is a *RefusedError, so that a probe of the key learns what is wrong with it: success means that the provider took the key.
func List(ctx context.Context, client dialect.Client, source Source, key string) ([]modelindex.Model, error) {
	a := asker{client: client, source: source, key: key}
	switch {
	case source.Dialect == "ollama":
		return a.ollama(ctx)
	case source.Dialect == "opencode":
		return a.openCode(ctx)
	case source.Dialect == "anthropic", source.Vendor == "anthropic":
		return a.anthropic(ctx)
	case source.Dialect == "gemini":
		return a.gemini(ctx, source.URL)
	case source.Vendor == "gemini":
		return a.geminiCompatible(ctx)
	case source.Vendor == "openrouter":
		return a.openRouter(ctx)
	case source.Vendor == "lmstudio":
		return a.lmStudio(ctx)
	}
	return a.openAI(ctx)
}

// entries finds the list in an answer. Providers put it under data or models, or send it bare. A null stands for an empty one only where
// the answer calls itself a list: others send it along with an error.
func entries(root gjson.Result) ([]gjson.Result, error) {
	if root.IsArray() {
		return root.Array(), nil
	}
	for _, name := range [...]string{"data", "models"} {
		if v := root.Get(name); v.IsArray() {
			return v.Array(), nil
		}
	}
	if root.Get("object").Str == "list" && root.Get("data").Raw == "null" { // Ollama without a model
		return nil, nil
	}
	return nil, unusable("no list of models")
}

// found collects models: the first ones, once each, with ids that can be used.
type found struct {
	models []modelindex.Model
	seen   map[string]bool
}

func (f *found) full() bool { return len(f.models) >= maxModels }

// add takes a model in and says whether it did.
func (f *found) add(m modelindex.Model) bool {
	if f.full() || !usable(m.ID) || f.seen[m.ID] {
		return false
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[m.ID] = true
	if m.Name = shown(m.Name); m.Name == m.ID {
		m.Name = ""
	}
	f.models = append(f.models, m)
	return true
}

// all gives what was found, which is never nil.
func (f *found) all() []modelindex.Model {
	if f.models == nil {
		return []modelindex.Model{}
	}
	return f.models
}

// usable says whether clients can ask for a model by this id: space around names does not count.
func usable(id string) bool {
	return id != "" && strings.TrimSpace(id) == id && len(id) <= maxID && strings.IndexFunc(id, unicode.IsControl) < 0
}

// shown makes a name fit to be seen by people.
func shown(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, name)
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	return strings.TrimSpace(name)
}

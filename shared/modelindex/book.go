package modelindex

import (
	"maps"
	"slices"

	"hydrallm/shared/contract"
)

// Book is everything that is known at one moment. It is never changed and may be shared. The zero Book is empty.
type Book struct {
	listings map[string]Listing
	byModel  map[string][]string // providers of each model id, sorted
}

// NewBook makes a book of listings. Of two listings of one provider the later one counts.
func NewBook(listings ...Listing) *Book {
	b := &Book{listings: make(map[string]Listing, len(listings)), byModel: map[string][]string{}}
	for _, l := range listings {
		b.listings[l.Provider] = l
	}
	for _, provider := range slices.Sorted(maps.Keys(b.listings)) {
		for _, m := range b.listings[provider].Models {
			if at := b.byModel[m.ID]; !slices.Contains(at, provider) {
				b.byModel[m.ID] = append(at, provider)
			}
		}
	}
	return b
}

// with gives a book in which the listing takes the place of the provider's older one.
func (b *Book) with(l Listing) *Book {
	return NewBook(append(slices.Collect(maps.Values(b.listings)), l)...)
}

func (b *Book) without(provider string) *Book {
	rest := maps.Clone(b.listings)
	delete(rest, provider)
	return NewBook(slices.Collect(maps.Values(rest))...)
}

// Listing gives what a provider offers. ok is false while its discovery has not answered.
func (b *Book) Listing(provider string) (l Listing, ok bool) {
	l, ok = b.listings[provider]
	return l, ok
}

// Find gives the model with exactly this id at a provider.
func (b *Book) Find(provider, model string) (Model, bool) {
	for _, p := range b.byModel[model] {
		if p == provider {
			return b.listings[p].Model(model)
		}
	}
	return Model{}, false
}

// Providers gives the providers that offer a model with exactly this id, sorted. The caller must not change the slice.
func (b *Book) Providers(model string) []string { return b.byModel[model] }

// Defaults are the models of a provider that the configuration names for automatic routing; either may be empty.
type Defaults struct{ Free, Premium string }

// Default chooses the model of a provider for a request that names none. premium says that a premium key may be used. ok is
// false when nothing is known; refused, which may be nil, tells models that the provider turned out not to serve.
//
// What the configuration names counts unless discovery has answered and does not know it. Otherwise it is the first discovered model of the
// wanted tier, then the first that is not premium, then the first.
func (b *Book) Default(provider string, d Defaults, premium bool, refused func(m Model) bool) (m Model, ok bool) {
	if refused == nil {
		refused = func(Model) bool { return false }
	}
	l, discovered := b.listings[provider]
	for _, name := range wanted(d, premium) {
		m, known := l.Model(name)
		if !known {
			if discovered && len(l.Models) > 0 {
				continue
			}
			m = Model{ID: name, Tier: contract.TierFree}
			if name == d.Premium && name != d.Free {
				m.Tier = contract.TierPremium
			}
		}
		if !refused(m) {
			return m, true
		}
	}
	return l.first(premium, refused)
}

// wanted are the configured names in order.
func wanted(d Defaults, premium bool) []string {
	var names []string
	if premium && d.Premium != "" {
		names = append(names, d.Premium)
	}
	if d.Free != "" {
		names = append(names, d.Free)
	}
	return names
}

func (l Listing) first(premium bool, refused func(Model) bool) (Model, bool) {
	for _, accept := range [...]func(Model) bool{
		func(m Model) bool { return premium && m.Tier == contract.TierPremium },
		func(m Model) bool { return m.Tier != contract.TierPremium },
		func(Model) bool { return true },
	} {
		for _, m := range l.Models {
			if !m.Embedding && accept(m) && !refused(m) {
				return m, true
			}
		}
	}
	return Model{}, false
}

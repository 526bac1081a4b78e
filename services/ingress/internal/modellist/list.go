// Package modellist makes the answers of GET /v1/models: the models of the configuration, the names that leave the choice to the gateway, and
// what discovery found (R-046..R-050). They are encoded when something changes, not when somebody asks.
package modellist

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"hydrallm/shared/modelindex"
	"hydrallm/shared/openai/rawjson"
)

// List is the list as it is now. It is safe for concurrent use.
type List struct {
	providers []Provider
	created   int64

	mu         sync.Mutex // held while the list is made
	configured []Model
	automatic  []string // ids of providers
	book       *modelindex.Book
	enabled    map[string]bool // discovered models that are listed; none = all
	current    atomic.Pointer[answers]
}

// answers are encoded once and never changed.
type answers struct {
	list []byte
	byID map[string][]byte // parts of list

	entries []spoken       // the same models, as Anthropic has them
	at      map[string]int // their places
}

// spoken is an entry of Anthropic's list.
type spoken struct {
	name     string
	id, text []byte // JSON
}

// New makes the list of an empty model index. Models come first and win over others with the same id; without providers nothing else is
// listed, and "auto" only if there are providers that it may ask.
func New(models []Model, providers []Provider, automatic []string, now time.Time) *List {
	l := &List{configured: models, providers: providers, automatic: automatic, created: now.Unix(), book: modelindex.NewBook()}
	l.encode()
	return l
}

// Part is the list, or a part of it. What it gives must not be changed.
type Part interface {
	// All gives the answer that lists all models.
	All() []byte
	// Find gives the answer for one model.
	Find(id string) (body []byte, ok bool)

	// Page and Entry are the same in Anthropic's words.
	Page(p Page) (body []byte, ok bool)
	Entry(id string) (body []byte, ok bool)
}

// Now gives the whole list as it is now.
func (l *List) Now() Part { return l.current.Load() }

// Only gives those models of the list whose ids are allowed.
func (l *List) Only(allowed func(id string) bool) Part {
	all := l.current.Load()
	some := &answers{list: []byte(listBegin), byID: map[string][]byte{}, at: map[string]int{}}
	for _, e := range all.entries {
		if !allowed(e.name) {
			continue
		}
		if len(some.entries) > 0 {
			some.list = append(some.list, ',')
		}
		some.list = append(some.list, all.byID[e.name]...)
		some.byID[e.name], some.at[e.name] = all.byID[e.name], len(some.entries)
		some.entries = append(some.entries, e)
	}
	some.list = append(some.list, listEnd...)
	return some
}

const (
	listBegin = `{"object":"list","data":[`
	listEnd   = "]}"
)

// All gives the answer that lists all models.
func (a *answers) All() []byte { return a.list }

// Find gives the answer for one model.
func (a *answers) Find(id string) (body []byte, ok bool) {
	body, ok = a.byID[id]
	return body, ok
}

// Update takes in what has been discovered. Only the models of configured providers are listed.
func (l *List) Update(book *modelindex.Book) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book = book
	l.encode()
}

// Choose says which models are configured, which providers automatic routing may ask, and which of the discovered models are listed, by their ids; none of
// these for all.
func (l *List) Choose(configured []Model, automatic, enabled []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.configured, l.automatic, l.enabled = configured, automatic, make(map[string]bool, len(enabled))
	for _, id := range enabled {
		l.enabled[id] = true
	}
	l.encode()
}

// Discovered gives the ids of all discovered models of configured providers, listed or not.
func (l *List) Discovered() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := []string{}
	for _, p := range l.providers {
		listing, _ := l.book.Listing(p.ID)
		for _, m := range listing.Models {
			ids = append(ids, p.id(m.ID))
		}
	}
	return ids
}

// encode makes the answers. The caller holds mu.
func (l *List) encode() {
	e := encoder{created: l.created, list: []byte(listBegin), at: map[string]place{}, places: map[string]int{}}
	for _, m := range l.configured {
		e.add(m)
	}
	if len(l.automatic) > 0 {
		e.add(l.auto(l.book))
	}
	for _, p := range l.providers {
		e.add(p.automatic(l.book))
	}
	for _, p := range l.providers {
		listing, _ := l.book.Listing(p.ID)
		for _, m := range listing.Models {
			if len(l.enabled) == 0 || l.enabled[p.id(m.ID)] {
				e.add(p.discovered(m))
			}
		}
	}
	l.current.Store(e.end())
}

type encoder struct {
	created int64
	list    []byte
	at      map[string]place
	entries []spoken
	places  map[string]int
}

// place of an entry in the list.
type place struct{ start, end int }

// add appends an entry. Of two with the same id the first one counts.
func (e *encoder) add(m Model) {
	if _, known := e.at[m.ID]; known {
		return
	}
	m.complete(e.created)
	text, err := json.Marshal(m)
	if err != nil { // strings and numbers always marshal
		panic(err)
	}
	if len(e.at) > 0 {
		e.list = append(e.list, ',')
	}
	start := len(e.list)
	e.list = append(e.list, text...)
	e.at[m.ID] = place{start, len(e.list)}
	e.places[m.ID] = len(e.entries)
	e.entries = append(e.entries, spoken{m.ID, rawjson.AppendString(nil, m.ID), entryOf(m)})
}

func (e *encoder) end() *answers {
	a := &answers{list: append(e.list, listEnd...), byID: make(map[string][]byte, len(e.at)), entries: e.entries, at: e.places}
	for id, p := range e.at {
		a.byID[id] = a.list[p.start:p.end:p.end]
	}
	return a
}

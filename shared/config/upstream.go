package config

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Upstream is one model at a provider.
type Upstream struct {
	ID        string
	Provider  string
	Model     string // as the provider calls it
	Limit     int    // calls at the same time; 0 = unlimited
	ThinkTags ThinkTags
	Patch     json.RawMessage // JSON object as in the file, or nil
	Defaults  json.RawMessage // the same, of members that the client may set itself
	Cost      *float64        // relative price, nil = not given
	Price     *Price          // nil = not given

	completions string // how requests to Completions are served: one of the words below
}

const (
	completionsChat   = "chat"   // through Chat Completions
	completionsNative = "native" // as they are: the provider has the route
)

// NativeCompletions says whether requests to Completions go to the same route of the provider, as they are.
func (u Upstream) NativeCompletions() bool { return u.completions == completionsNative }

// ThinkTags says what happens to <think> blocks.
type ThinkTags string

// Modes of ThinkTags.
const (
	ThinkOff   ThinkTags = "off"
	ThinkSplit ThinkTags = "split"
	ThinkStrip ThinkTags = "strip"
)

// thinkTags is a mode. It stays "" when the key is absent; what is unknown is off.
func thinkTags(p *ThinkTags) kind {
	return kind{name: "`off`, `split`, `strip`", read: func(n node) {
		if n.Kind != yaml.ScalarNode {
			n.fail("must be off, split or strip (got %s)", n.shape())
			return
		}
		switch mode := strings.ToLower(strings.TrimSpace(n.Value)); mode {
		case "split", "true":
			*p = ThinkSplit
		case "strip":
			*p = ThinkStrip
		case "off", "false", "":
			*p = ThinkOff
		default:
			n.warn("must be off, split or strip (got %s), off is used%s", n.shown(), suggestion(mode, []string{"off", "split", "strip"}))
			*p = ThinkOff
		}
	}}
}

// upstreamEntry is an upstream as the file has it.
type upstreamEntry struct {
	Upstream
	path  string
	limit *int
	price priceEntry
}

func (u *upstreamEntry) settings() []setting {
	return []setting{
		key("id", name(&u.ID), "", "unique name").must().not("name"),
		key("provider", name(&u.Provider), "", "id of an entry of `providers`").must(),
		key("model", name(&u.Model), "", "the model as the provider calls it").must().not("modelname"),
		key("max_concurrency", limit(&u.limit), "null", "calls at the same time. null: that of the provider. `0`: unlimited, also when the provider has a limit. "+
			"Calls of the same model of the provider under other names count too").
			not("concurrency", "maxparallel", "parallel"),
		key("think_tags", thinkTags(&u.ThinkTags), "null", "null: that of the provider. `off` wins over the provider's"),
		key("completions", oneOf(&u.completions, completionsChat, completionsNative), "chat", "what becomes of requests to `/v1/completions`. `chat`: the prompt is "+
			"what the user says. `native`: they go to the same route of the provider as they are, with `suffix`, `echo` and all else").not("textcompletions"),
		key("patch", patch(&u.Patch), "{}", "merged after the provider's, see [patches](#patches)"),
		key("defaults", defaults(&u.Defaults), "{}", "win over the provider's, see [defaults](#defaults)"),
		key("cost", kind{name: "number from 0 on, or null", read: u.readCost}, "null", "relative price, which orders upstreams where no list does. "+
			"null: from `price`, three tokens of prompts counting with one of answers"),
		key("price", kind{name: "mapping", fields: u.price.settings(), read: func(n node) { u.Price = u.price.read(n) }}, "null",
			"what its tokens cost, in any currency that is the same for all upstreams, for the ledger. It holds for the same model of the provider in "+
				"automatic routing too. null: not known").not("prices", "pricing"),
	}
}

func (u *upstreamEntry) readCost(n node) {
	cost := -1.0
	if number(&cost, math.MaxFloat64).read(n); cost >= 0 {
		u.Cost = &cost
	}
}

// addUpstream takes from the provider what the upstream leaves open, checks it and adds it to the configuration.
func (doc *document) addUpstream(u *upstreamEntry) {
	p, known := doc.Provider(u.Provider)
	if !known && u.Provider != "" {
		doc.fail(u.path+".provider", "there is no provider %q%s", short(u.Provider), suggestion(u.Provider, sortedKeys(doc.providerAt))) // C-12
	}
	if known && u.NativeCompletions() && !Dialects[p.Dialect].Passes {
		doc.fail(u.path+".completions", "provider %q has the dialect %s, which has no such route", short(u.Provider), p.Dialect)
	}
	u.Limit = p.Limit
	if u.limit != nil {
		u.Limit = *u.limit
	}
	if u.ThinkTags == "" {
		u.ThinkTags = p.ThinkTags
	}
	if doc.unique(u.ID, u.path, "id", doc.upstreamAt, "upstreams") {
		doc.upstreamAt[u.ID] = len(doc.Upstreams)
		doc.Upstreams = append(doc.Upstreams, u.Upstream)
	}
}

// checkUse warns of what nothing refers to.
func (doc *document) checkUse() {
	used := map[string]bool{}
	for _, m := range doc.Models {
		for _, id := range m.Upstreams {
			used[id] = true
		}
	}
	called := map[string]bool{}
	for _, u := range doc.upstreams {
		called[u.Provider] = true
		if u.ID != "" && !used[u.ID] && u.Price == nil { // it may be there to tell the price
			doc.warn(u.path, "upstream %q is in no model", short(u.ID))
		}
	}
	for _, p := range doc.providers {
		if p.ID != "" && !called[p.ID] && !doc.routed(p.ID) {
			doc.warn(p.path, "provider %q has no upstream", short(p.ID))
		}
	}
}

// checkLimits warns of limits that look shared but are not (C-13), and of models with two limits, where each name compares the calls under all of
// them with its own.
func (doc *document) checkLimits() {
	type model struct{ provider, name string }
	first, inheriting := map[model]*upstreamEntry{}, map[string]map[string]bool{}
	for _, u := range doc.upstreams {
		p, known := doc.Provider(u.Provider)
		if !known {
			continue
		}
		if u.limit == nil {
			if inheriting[p.ID] == nil {
				inheriting[p.ID] = map[string]bool{}
			}
			inheriting[p.ID][u.Model] = true
		}
		m := model{p.ID, u.Model}
		other := first[m]
		if other == nil {
			first[m] = u
		}
		const text = "the calls of model %q are counted together under all its names, but %s has a limit of %s, and %s of %s"
		switch {
		case other != nil && other.Limit != u.Limit:
			doc.warn(u.path+".max_concurrency", text, short(u.Model), "upstream "+short(other.ID), limitText(other.Limit), "upstream "+short(u.ID), limitText(u.Limit))
		case other == nil && p.Limit > 0 && p.Limit != u.Limit && doc.routed(p.ID):
			doc.warn(u.path+".max_concurrency", text, short(u.Model), "provider "+short(p.ID), limitText(p.Limit), "upstream "+short(u.ID), limitText(u.Limit))
		}
	}
	for _, p := range doc.providers {
		if n := len(inheriting[p.ID]); p.Limit > 0 && n > 1 {
			doc.warn(p.path+".max_concurrency", "the limit of %d holds for each of %d models, not for all of them together", p.Limit, n)
		}
	}
}

func limitText(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

// routed says whether a provider takes requests without an upstream: one that clients can name in front of a model, or that automatic routing
// may use.
func (doc *document) routed(id string) bool {
	r := doc.Routing
	_, preset := presets[id]
	return preset || id == r.Large || id == r.FinalFallback || slices.Contains(r.Priority, id) || slices.Contains(r.Fast, id)
}

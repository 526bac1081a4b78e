package config

import (
	"encoding/json"
	"math"
	"slices"
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
}

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
}

func (u *upstreamEntry) settings() []setting {
	return []setting{
		key("id", name(&u.ID), "", "unique name").must().not("name"),
		key("provider", name(&u.Provider), "", "id of an entry of `providers`").must(),
		key("model", name(&u.Model), "", "the model as the provider calls it").must().not("modelname"),
		key("max_concurrency", limit(&u.limit), "null", "calls at the same time. null: that of the provider. `0`: unlimited, also when the provider has a limit").
			not("concurrency", "maxparallel", "parallel"),
		key("think_tags", thinkTags(&u.ThinkTags), "null", "null: that of the provider. `off` wins over the provider's"),
		key("patch", patch(&u.Patch), "{}", "merged after the provider's, see [patches](#patches)"),
		key("defaults", defaults(&u.Defaults), "{}", "win over the provider's, see [defaults](#defaults)"),
		key("cost", kind{name: "number from 0 on, or null", read: u.readCost}, "null", "relative price. It orders only chains that no model lists").idle(),
	}
}

func (u *upstreamEntry) readCost(n node) {
	cost := -1.0
	if number(&cost, 0, math.MaxFloat64).read(n); cost >= 0 {
		u.Cost = &cost
	}
}

// addUpstream takes from the provider what the upstream leaves open, checks it and adds it to the configuration.
func (doc *document) addUpstream(u *upstreamEntry) {
	p, known := doc.Provider(u.Provider)
	if !known && u.Provider != "" {
		doc.fail(u.path+".provider", "there is no provider %q%s", short(u.Provider), suggestion(u.Provider, sortedKeys(doc.providerAt))) // C-12
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

// checkUse warns of what nothing refers to, and of limits that look shared but are not (C-13).
func (doc *document) checkUse() {
	used := map[string]bool{}
	for _, m := range doc.Models {
		for _, id := range m.Upstreams {
			used[id] = true
		}
	}
	called, inheriting := map[string]bool{}, map[string]int{}
	for _, u := range doc.upstreams {
		called[u.Provider] = true
		if u.limit == nil {
			inheriting[u.Provider]++
		}
		if u.ID != "" && !used[u.ID] {
			doc.warn(u.path, "upstream %q is in no model", short(u.ID))
		}
	}
	for _, p := range doc.providers {
		if p.ID != "" && !called[p.ID] && !doc.routed(p.ID) {
			doc.warn(p.path, "provider %q has no upstream", short(p.ID))
		}
		if p.Limit > 0 && inheriting[p.ID] > 1 {
			doc.warn(p.path+".max_concurrency", "the limit of %d holds for each of %d upstreams, not for all of them together", p.Limit, inheriting[p.ID])
		}
	}
}

// routed says whether a provider takes requests without an upstream: one that clients can name in front of a model, or that automatic routing
// may use.
func (doc *document) routed(id string) bool {
	r := doc.Routing
	_, preset := presets[id]
	return preset || id == r.Large || id == r.FinalFallback || slices.Contains(r.Priority, id) || slices.Contains(r.Fast, id)
}

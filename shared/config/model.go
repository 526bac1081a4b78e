package config

import "encoding/json"

// Model is a name that clients see.
type Model struct {
	Name      string
	Upstreams []string        // known ids in order of priority, each once
	Patch     json.RawMessage // JSON object as in the file, or nil
	Pipeline  bool            // system block, sessions and web text apply to it (C-03)
}

// Usable says whether requests for the model can be served. A model that is not usable is not listed and gets 404.
func (m Model) Usable() bool { return len(m.Upstreams) > 0 }

// modelEntry is a model as the file has it.
type modelEntry struct {
	Model
	path string
	refs []reference
}

// reference is the mention of an upstream.
type reference struct{ id, path string }

func (doc *document) model(n node) {
	m := &modelEntry{path: n.path}
	n.fields(map[string]func(node){
		"name": name(&m.Name), "patch": patch(&m.Patch), "pipeline": boolean(&m.Pipeline),
		"upstreams": func(n node) {
			n.items(func(item node) {
				ref := reference{path: item.path}
				if name(&ref.id)(item); ref.id != "" {
					m.refs = append(m.refs, ref)
				}
			})
		},
	})
	doc.models = append(doc.models, m)
}

// addModel keeps the references that lead to an upstream, checks the model and adds it to the configuration.
func (doc *document) addModel(m *modelEntry) {
	doc.require(m.path, "name")
	doc.require(m.path, "upstreams")
	seen := map[string]bool{}
	for _, ref := range m.refs {
		_, known := doc.upstreamAt[ref.id]
		switch {
		case seen[ref.id]:
			doc.warn(ref.path, "upstream %q again, ignored", short(ref.id))
		case !known:
			doc.warn(ref.path, "there is no upstream %q, ignored", short(ref.id))
		default:
			seen[ref.id] = true
			m.Upstreams = append(m.Upstreams, ref.id)
		}
	}
	if !m.Usable() {
		doc.warn(m.path, "model %q has no usable upstream: it is not listed, and requests for it get 404", short(m.Name))
	}
	if hops := doc.Resilience.MaxHops; len(m.Upstreams) > hops {
		doc.warn(m.path+".upstreams", "model %q has %d upstreams, but a request calls at most resilience.max_hops = %d of them",
			short(m.Name), len(m.Upstreams), hops)
	}
	if doc.unique(m.Name, m.path, "name", doc.modelAt, "models") {
		doc.modelAt[m.Name] = len(doc.Models)
		doc.Models = append(doc.Models, m.Model)
	}
}

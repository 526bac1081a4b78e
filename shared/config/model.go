package config

import (
	"encoding/json"
	"time"
)

// Model is a name that clients see.
type Model struct {
	Name      string
	Upstreams []string        // known ids in order of priority, each once
	Patch     json.RawMessage // JSON object as in the file, or nil
	Defaults  json.RawMessage // the same, of members that the client may set itself
	Pipeline  bool            // system block, sessions and web text apply to it (C-03)
	Queue     Queue
}

// Queue is how requests for a model wait while all its upstreams are at their limits.
type Queue struct {
	Length int           // requests that may wait, over all dispatchers; 0 = none: a request that finds no free slot is refused
	Wait   time.Duration // the longest that one waits
}

// maxQueue bounds a queue, whose entries all dispatchers hold and renew.
const maxQueue = 10000

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

func (m *modelEntry) settings() []setting {
	return []setting{
		key("name", name(&m.Name), "", "unique name, compared exactly. It may hold slashes and colons").must().not("id", "modelname", "alias"),
		key("upstreams", kind{name: "list of ids", read: m.readUpstreams}, "", "in order of priority. An unknown id is left out with a warning; "+
			"a model without any upstream is not listed and gets 404").inherits("all whose `model` is this name, the cheapest first").
			not("backends", "targets", "deployments"),
		key("patch", patch(&m.Patch), "{}", "merged last, see [patches](#patches)"),
		key("defaults", defaults(&m.Defaults), "{}", "win over the upstream's, see [defaults](#defaults)"),
		key("pipeline", boolean(&m.Pipeline), "false", "`true`: system block, sessions and text from the web apply to this model as they do to "+
			"automatic routing"),
		key("queue", mapping(
			key("length", integer(&m.Queue.Length, 0, maxQueue), "0", "how many requests may wait, over all dispatchers; 0: a request that finds no free slot is a 503 at once"),
			key("wait", positive(&m.Queue.Wait), "30s", "the longest that a request waits"),
		), "", "where requests wait while all upstreams of the model are at their `max_concurrency`, see [operations](operations.md#queues)"),
	}
}

func (m *modelEntry) readUpstreams(n node) {
	n.items(func(item node) {
		ref := reference{path: item.path}
		if name(&ref.id).read(item); ref.id != "" {
			m.refs = append(m.refs, ref)
		}
	})
}

// addModel keeps the references that lead to an upstream, checks the model and adds it to the configuration.
func (doc *document) addModel(m *modelEntry) {
	if path := m.path + ".upstreams"; !doc.given(path) {
		if m.Upstreams = doc.cheapestFirst(m.Name); !m.Usable() {
			doc.fail(path, "is missing, and no upstream has a model of this name")
		}
	}
	seen := map[string]bool{}
	for _, ref := range m.refs {
		_, known := doc.upstreamAt[ref.id]
		switch {
		case seen[ref.id]:
			doc.warn(ref.path, "upstream %q again, ignored", short(ref.id))
		case !known:
			doc.warn(ref.path, "there is no upstream %q, ignored%s", short(ref.id), suggestion(ref.id, sortedKeys(doc.upstreamAt)))
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

package config

import "go.yaml.in/yaml/v3"

// document is a configuration on its way from the text to a Config: the sections that stand for themselves are read into it at once, the three
// lists stay as they are written until everything they refer to is known.
type document struct {
	Config
	*findings
	providers []*providerEntry
	upstreams []*upstreamEntry
	models    []*modelEntry
}

func newDocument(source string, f *findings) *document {
	doc := &document{Config: defaults(), findings: f}
	doc.Source = source
	doc.providerAt, doc.upstreamAt, doc.modelAt = map[string]int{}, map[string]int{}, map[string]int{}
	return doc
}

// read takes all sections of a file.
func (doc *document) read(root node) {
	if root.null() {
		return
	}
	var lists [3]node
	hold := func(i int) func(node) { return func(n node) { lists[i] = n } }
	root.fields(map[string]func(node){
		"server": doc.server, "routing": doc.routing, "resilience": doc.resilience, "web": doc.web,
		"sessions": doc.sessions, "nats": doc.nats, "log": doc.log, "telemetry": doc.telemetry,
		"providers": hold(0), "upstreams": hold(1), "models": hold(2),
	})
	for i, read := range []func(node){doc.provider, doc.upstream, doc.model} { // after resilience, whose timeouts they inherit
		if lists[i].Node != nil {
			lists[i].items(func(item node) {
				if item.Kind != yaml.MappingNode {
					item.fail("must be a mapping (got %s)", item.shape())
					return
				}
				read(item)
			})
		}
	}
}

// resolve completes and checks the lists, and gives the configuration. It is of no use when there are errors.
func (doc *document) resolve() *Config {
	for _, p := range doc.providers {
		doc.addProvider(p)
	}
	for _, u := range doc.upstreams {
		doc.addUpstream(u)
	}
	for _, m := range doc.models {
		doc.addModel(m)
	}
	doc.checkUse()
	doc.checkServer()
	doc.checkRouting()
	doc.checkTimeouts("resilience.request_timeout", doc.Resilience.HeadersTimeout, doc.Resilience.RequestTimeout)
	doc.checkWeb()
	return &doc.Config
}

// require reports a missing key. One that is there but wrong is reported by its reader.
func (doc *document) require(path, key string) {
	if !doc.given(path + "." + key) {
		doc.fail(path+"."+key, "is missing")
	}
}

// unique says whether id is new, and reports when it isn't.
func (doc *document) unique(id, path, key string, index map[string]int, section string) bool {
	if id == "" {
		return false
	}
	first, twice := index[id]
	if twice {
		doc.fail(path+"."+key, "%q is given twice: %s[%d] has it too", short(id), section, first)
	}
	return !twice
}

package config

// document is a configuration on its way from the text to a Config: the sections that stand for themselves are read into it at once, the three
// lists stay as they are written until everything they refer to is known.
type document struct {
	Config
	*findings
	providers []*providerEntry
	upstreams []*upstreamEntry
	models    []*modelEntry
	started   string            // directory in which the process was started
	folded    map[string]string // first provider id by its form in lower case
}

func newDocument(source, started string, f *findings) *document {
	doc := &document{findings: f, started: started, folded: map[string]string{}}
	doc.Source = source
	setDefaults(doc.settings())
	doc.providerAt, doc.upstreamAt, doc.modelAt = map[string]int{}, map[string]int{}, map[string]int{}
	return doc
}

func (doc *document) settings() []setting {
	return []setting{
		key("server", mapping(doc.Server.settings()...), "", "The side of the clients."),
		key("providers", entries(&doc.providers, newProviderEntry), "", "Where models are. Each entry is one API with its credentials."),
		key("upstreams", entries(&doc.upstreams, func(path string) *upstreamEntry { return &upstreamEntry{path: path} }), "",
			"The models of the providers. A request for a configured model goes to one of its upstreams."),
		key("models", entries(&doc.models, func(path string) *modelEntry { return &modelEntry{path: path} }), "",
			"The names that clients see. They come before every other meaning of a name."),
		key("routing", mapping(doc.Routing.settings()...), "", "Requests for `auto`, for aliases, and for all other names that are no configured model."),
		key("resilience", mapping(doc.Resilience.settings()...), "", "Limits of retries, time and failures."),
		key("web", mapping(doc.Web.settings()...), "", "Text from web pages and search results for prompts."),
		key("sessions", mapping(doc.Sessions.settings()...), "", "What is stored."),
		key("nats", mapping(doc.NATS.settings()...), "", "The server that carries all messages."),
		key("log", mapping(doc.Log.settings()...), "", "The log output."),
		key("telemetry", mapping(doc.Telemetry.settings()...), "", "Traces."),
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
	doc.placePaths()
	doc.resolveRouting()
	doc.checkUse()
	doc.checkLimits()
	doc.checkProviders()
	doc.checkServer()
	doc.checkAliases()
	doc.checkNATS()
	doc.checkCooldowns()
	doc.checkTimeouts("resilience.request_timeout", doc.Resilience.HeadersTimeout, doc.Resilience.RequestTimeout)
	doc.checkWeb()
	doc.checkSessions()
	return &doc.Config
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

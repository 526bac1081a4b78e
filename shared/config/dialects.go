package config

import "strings"

// Dialect is what all services have to know of a protocol that providers speak. How it is spoken is the affair of the dispatcher.
type Dialect struct {
	Version string // path that completes the address of a bare host, which every server of the dialect has; "" for none
	Brings  string // path that operations bring along, and that is left out at the end of an address
	Native  string // path that is no part of an address, but often copied with it: native operations are below it, beside the version
	Passes  bool   // every route of OpenAI's API may be there, and is asked as it is
	Agent   bool   // its providers are local agents rather than clouds
	Chooses bool   // an agent that has a model of its own where nobody names one
}

// Dialects are the dialects by the word that the configuration has for them. Whoever adds one does so before a configuration is read, and tells the
// dispatcher who speaks it.
var Dialects = map[string]Dialect{
	"openai":    {Version: "/v1", Passes: true},
	"gemini":    {Version: "/v1beta"},
	"anthropic": {Brings: "/v1"},
	"ollama":    {Version: "/v1", Native: "/api", Passes: true, Agent: true},
	"opencode":  {Agent: true, Chooses: true},
	"openclaw":  {Version: "/v1", Agent: true, Chooses: true},
}

// Agent says whether the provider is a local agent rather than a cloud provider: one of the engines that clients name as
// LOCAL-AGENT/<id>/<model> (R-072), by its dialect or by its id.
func (p *Provider) Agent() bool {
	return Dialects[p.Dialect].Agent || Dialects[presets[p.ID].dialect].Agent
}

// complete gives the address of a provider as its dialect wants it, with the version where it was given as a bare host (URL-01).
func (d Dialect) complete(address string) string {
	if d.Brings != "" {
		path, query, found := strings.Cut(address, "?")
		path = strings.TrimSuffix(path, d.Brings)
		if found {
			path += "?" + query
		}
		return path
	}
	u, problem := parseURL(address, "http", "https")
	if problem != "" || u.Path != "" || d.Version == "" {
		return address
	}
	u.Path = d.Version
	return u.String()
}

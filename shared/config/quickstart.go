package config

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// quickStart builds a configuration from the environment alone.
func (e Environment) quickStart() (*Config, []Finding, error) {
	r := &reader{findings: newFindings(""), lookup: e.Lookup}
	doc := newDocument(FromEnvironment, e.Dir, r.findings)
	doc.Server.Port = portWithoutFile
	doc.readDataDir(r)
	r.readVariables("", doc.settings())
	doc.applyServer(r)
	doc.bare = true
	for _, id := range presetIDs() {
		doc.addPreset(r, id)
	}
	if e.Names != nil {
		doc.checkUnread(e.Names())
	}
	return doc.finish()
}

// readVariables takes the variables of all settings that have one.
func (r *reader) readVariables(below string, all []setting) {
	for _, s := range all {
		if !s.kind.list {
			r.readVariables(join(below, s.key), s.kind.fields)
		}
		if n, ok := r.variable(s.variable); ok {
			r.sources[join(below, s.key)] = FromVariable
			s.fromText(n)
		}
	}
}

// addPreset adds a well-known provider when the environment has keys or an address for it. A local Ollama is always there: it is the final
// fallback of automatic routing.
func (doc *document) addPreset(r *reader, id string) {
	pre := presets[id]
	p := newProviderEntry(id)
	setDefaults(p.settings())
	p.ID = id
	for _, name := range pre.keyVariables() {
		if n, ok := r.variable(name); ok {
			doc.lines[join(id, "keys")] = 0
			n.words(p.addKey)
		}
	}
	if pre.local() && len(p.Keys) == 1 { // the password of a local engine, which has no cooldowns
		p.key, p.Keys = p.Keys[0].Value, nil
	}
	if n, ok := r.variable(pre.env + "_BASE_URL"); ok {
		doc.lines[join(id, "url")] = 0
		web(&p.URL).read(n)
		if doc.isSelf(p.URL) { // it is for a client of this gateway, and so is the key
			n.warn("leads to this gateway itself: %s is not used", id)
			return
		}
	}
	if n, ok := r.variable(pre.env + "_TIMEOUT"); ok {
		doc.lines[join(id, "headers_timeout")] = 0
		whole(&p.HeadersTimeout, time.Second, 1).read(n)
	}
	if id == "gemini" { // the environment knows default models for the provider of large requests only
		if n, ok := r.variable("DEFAULT_FREE_MODEL"); ok {
			text(&p.DefaultModels.Free).read(n)
		}
		if n, ok := r.variable("DEFAULT_PREMIUM_MODEL"); ok {
			text(&p.DefaultModels.Premium).read(n)
		}
	}
	configured := len(p.Keys) > 0 || p.key != "" || p.URL != ""
	if configured {
		doc.bare = false
	}
	if configured || id == "ollama" {
		doc.providers = append(doc.providers, p)
	}
}

// isSelf says whether an address is that of this gateway, seen from this machine.
func (doc *document) isSelf(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Port() == strconv.Itoa(doc.Server.Port) && Server{Host: u.Hostname()}.Loopback()
}

// keyVariables are the variables that hold keys of a well-known provider, one or a list.
func (p preset) keyVariables() []string {
	return append([]string{p.env + "_KEYS", p.env + "_API_KEYS", p.env + "_API_KEY", p.env + "_KEY"}, p.keys...)
}

// local says whether the provider runs on this machine, if nothing else is said.
func (p preset) local() bool { return strings.HasPrefix(p.urls[p.dialect], "http://localhost:") }

// variables are the names of all environment variables that a start without a file reads, but for those that count beside a file too.
func (doc *document) variables() []string {
	all := []string{"DEFAULT_FREE_MODEL", "DEFAULT_PREMIUM_MODEL"}
	for _, id := range presetIDs() {
		all = append(all, presets[id].keyVariables()...)
		all = append(all, presets[id].env+"_BASE_URL", presets[id].env+"_TIMEOUT")
	}
	var walk func([]setting)
	walk = func(list []setting) {
		for _, s := range list {
			if s.variable != "" {
				all = append(all, s.variable)
			}
			if !s.kind.list {
				walk(s.kind.fields)
			}
		}
	}
	walk(doc.settings())
	return all
}

// keyLike is what variables are called that hold keys of a provider.
var keyLike = regexp.MustCompile(`^[A-Z][A-Z0-9_]*_(API_KEYS?|API_TOKENS?|KEYS)$`)

// checkUnread names the variables that look like keys of providers, and that nothing reads.
func (doc *document) checkUnread(names []string) {
	known := append(doc.variables(), append(clientKeyVariables(), "ADMIN_API_KEY")...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		upper := strings.ToUpper(name)
		if keyLike.MatchString(upper) && !slices.Contains(known, upper) {
			hint := suggestion(upper, known)
			if hint == "" {
				hint = ": its provider needs a configuration file"
			}
			doc.warn(name, "looks like the key of a provider, and is not read%s", hint)
		}
	}
}

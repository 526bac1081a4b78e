package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/joho/godotenv"
)

// Environment is where a configuration comes from.
type Environment struct {
	Dir    string                      // working directory
	Lookup func(string) (string, bool) // environment variables
}

// Process is the environment of this process.
func Process() (Environment, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Environment{}, fmt.Errorf("finding the working directory: %w", err)
	}
	return Environment{Dir: dir, Lookup: os.LookupEnv}, nil
}

// withDotenv adds the variables of the .env file in the working directory that are not set.
func (e Environment) withDotenv() (Environment, error) {
	data, err := readFile(filepath.Join(e.Dir, ".env"))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("reading .env: %w", err)
	}
	vars, err := godotenv.UnmarshalBytes(bytes.TrimPrefix(data, []byte("\ufeff")))
	if err != nil {
		return e, errors.New("reading .env: it is not a list of NAME=value lines") // the parser's error may show a value
	}
	outer := e.Lookup
	e.Lookup = func(name string) (string, bool) {
		if v, ok := outer(name); ok {
			return v, true
		}
		v, ok := vars[name]
		return v, ok
	}
	return e, nil
}

// setting is one environment variable that the start without a file takes, and what reads it.
type setting struct {
	name string
	read func(node)
}

// settings are those that belong to no provider (section 13 of the requirements). Each has a key of the file that does the same.
func (doc *document) settings() []setting {
	s, r, w := &doc.Server, &doc.Routing, &doc.Web
	return []setting{
		{"HOST", s.readHost},
		{"PORT", integer(&s.Port, 1, math.MaxUint16)},
		{"LOCALE", oneOf(&s.Locale, "en", "ko")},
		{"LOG_LEVEL", logLevel(&doc.Log.Level)},
		{"PROVIDER_PRIORITY", list(&r.Priority)},
		{"MAX_TOKENS_FAST_MODEL", integer(&r.MaxTokensFast, 1, math.MaxInt32)},
		{"FREE_MODELS", list(&r.FreeModels)},
		{"PREMIUM_MODELS", list(&r.PremiumModels)},
		{"MAX_RETRIES", integer(&doc.Resilience.MaxRetries, 1, math.MaxInt16)},
		{"ENABLE_AUTO_WEB_FETCH", boolean(&w.Enabled)},
		{"WEB_BACKEND", oneOf(&w.Backend, "inprocess", "mcp")},
		{"SEARCH_MCP_URL", web(&w.MCP.URL)},
		{"SEARCH_MCP_TOKEN", secret(&w.MCP.Token)},
		{"SEARCH_MCP_FALLBACK", boolean(&w.MCP.Fallback)},
		{"SEARCH_PROVIDERS", list(&w.Search)},
		{"SEARXNG_BASE_URL", web(&w.SearxNGURL)},
		{"OPENSERP_BASE_URL", web(&w.OpenSERP.URL)},
		{"OPENSERP_ENGINE", text(&w.OpenSERP.Engine)},
		{"WEB_CACHE_TTL_HOURS", multiple(&w.CacheTTL, time.Hour, 0)},
		{"EMBEDDING_MODEL", text(&w.Intent.EmbeddingModel)},
		{"DATA_DIR", doc.readDataDir},
		{"DATABASE_URL", doc.Sessions.readDatabase},
		{"MAX_SESSIONS", integer(&doc.Sessions.MaxSessions, 0, math.MaxInt32)},
		{"SESSION_RETENTION_DAYS", integer(&doc.Sessions.RetentionDays, 1, 365)},
		{"SESSION_COMPACT_THRESHOLD", integer(&doc.Sessions.CompactThreshold, 1, math.MaxInt32)},
		{"SESSION_RECENT_WINDOW", integer(&doc.Sessions.RecentWindow, 1, math.MaxInt32)},
		{"NATS_URL", doc.NATS.readURL},
	}
}

// multiple reads a whole number of some unit, at least low of it.
func multiple(p *time.Duration, unit time.Duration, low int) func(node) {
	return func(n node) {
		i := -1
		integer(&i, low, int(math.MaxInt32*time.Second/unit))(n)
		if i >= 0 {
			*p = time.Duration(i) * unit
		}
	}
}

// readDataDir moves what is stored to another directory.
func (doc *document) readDataDir(n node) {
	dir, ok := n.text()
	if !ok {
		return
	}
	doc.Sessions.Database = Secret("sqlite:" + filepath.Join(dir, "hydrallm.db"))
	doc.NATS.StoreDir = filepath.Join(dir, "nats")
}

// variable gives the value of an environment variable, whose name may also be in lower case. One that is blank counts as not set.
func (r *reader) variable(name string) (n node, ok bool) {
	for _, spelling := range []string{name, strings.ToLower(name)} {
		if v, set := r.lookup(spelling); set && strings.TrimSpace(v) != "" {
			return node{Node: scalar(v, 0), r: r, path: name, literal: true}, true
		}
	}
	return node{}, false
}

// quickStart builds a configuration from the environment alone.
func (e Environment) quickStart() (*Config, []Finding, error) {
	r := &reader{findings: newFindings(""), lookup: e.Lookup}
	doc := newDocument("environment", r.findings)
	doc.Server.Port = portWithoutFile
	for _, s := range doc.settings() {
		if n, ok := r.variable(s.name); ok {
			s.read(n)
		}
	}
	doc.applyServer(r)
	doc.bare = true
	for _, id := range presetIDs() {
		doc.addPreset(r, id)
	}
	return doc.finish()
}

// addPreset adds a well-known provider when the environment has keys or an address for it. A local Ollama is always there: it is the final
// fallback of automatic routing.
func (doc *document) addPreset(r *reader, id string) {
	pre := presets[id]
	p := newProviderEntry(doc, id)
	p.ID = id
	doc.lines[join(id, "id")] = 0
	read := func(suffix, key string, fn func(node)) {
		if n, ok := r.variable(pre.env + suffix); ok {
			doc.lines[join(id, key)] = 0
			fn(n)
		}
	}
	read("_KEYS", "keys", func(n node) { n.words(p.addKey) })
	if !pre.pooled {
		read("_BASE_URL", "url", web(&p.URL))
		if len(p.Keys) == 1 { // the password of a local engine, which has no cooldowns
			p.key, p.Keys = p.Keys[0].Value, nil
		}
	}
	read("_TIMEOUT", "headers_timeout", multiple(&p.HeadersTimeout, time.Second, 1))
	if id == "gemini" {
		p.readDefaultModels(r)
	}
	configured := len(p.Keys) > 0 || p.key != "" || p.URL != ""
	if configured {
		doc.bare = false
	}
	if configured || id == "ollama" {
		doc.providers = append(doc.providers, p)
	}
}

// readDefaultModels takes the models for automatic routing, which the environment knows for the provider of large requests only.
func (p *providerEntry) readDefaultModels(r *reader) {
	if n, ok := r.variable("DEFAULT_FREE_MODEL"); ok {
		text(&p.DefaultModels.Free)(n)
	}
	if n, ok := r.variable("DEFAULT_PREMIUM_MODEL"); ok {
		text(&p.DefaultModels.Premium)(n)
	}
}

// applyServer takes what the environment may give beside a file: the admin key, if the file has none, and the debug switch.
func (doc *document) applyServer(r *reader) {
	if n, ok := r.variable("ADMIN_API_KEY"); ok {
		var key Secret
		secret(&key)(n)
		switch {
		case doc.Server.AdminKey == "":
			doc.Server.AdminKey = key
		case doc.Server.AdminKey != key:
			doc.warn("server.admin_key", "ADMIN_API_KEY is ignored: the file has another key")
		}
	}
	if n, ok := r.variable("DEBUG"); ok {
		var debug bool
		boolean(&debug)(n)
		doc.Server.Debug = doc.Server.Debug || debug
	}
}

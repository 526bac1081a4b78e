package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
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

// readVariables takes the variables of all settings that have one. idle says that nothing reads these settings yet.
func (r *reader) readVariables(all []setting, idle bool) {
	for _, s := range all {
		idle := idle || s.isIdle
		if !s.kind.list {
			r.readVariables(s.kind.fields, idle)
		}
		if n, ok := r.variable(s.variable); ok {
			if idle {
				n.warn(noEffect)
			}
			s.fromText(n)
		}
	}
}

// readDataDir moves what is stored to another directory.
func (doc *document) readDataDir(r *reader) {
	n, ok := r.variable("DATA_DIR")
	if !ok {
		return
	}
	dir := strings.TrimSpace(n.Value)
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
	doc.readDataDir(r)
	r.readVariables(doc.settings(), false)
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
	p := newProviderEntry(id)
	setDefaults(p.settings())
	p.ID = id
	read := func(suffix, key string, fn func(node)) {
		if n, ok := r.variable(pre.env + suffix); ok {
			doc.lines[join(id, key)] = 0
			fn(n)
		}
	}
	read("_KEYS", "keys", func(n node) { n.words(p.addKey) })
	if !pre.pooled {
		read("_BASE_URL", "url", web(&p.URL).read)
		if len(p.Keys) == 1 { // the password of a local engine, which has no cooldowns
			p.key, p.Keys = p.Keys[0].Value, nil
		}
	}
	read("_TIMEOUT", "headers_timeout", whole(&p.HeadersTimeout, time.Second, 1).read)
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
		text(&p.DefaultModels.Free).read(n)
	}
	if n, ok := r.variable("DEFAULT_PREMIUM_MODEL"); ok {
		text(&p.DefaultModels.Premium).read(n)
	}
}

// applyServer takes what the environment may give beside a file: the admin key, if the file has none, and the debug switch.
func (doc *document) applyServer(r *reader) {
	if n, ok := r.variable("ADMIN_API_KEY"); ok {
		var key Secret
		secret(&key).read(n)
		switch {
		case doc.Server.AdminKey == "":
			doc.Server.AdminKey = key
		case doc.Server.AdminKey != key:
			doc.warn("server.admin_key", "ADMIN_API_KEY is ignored: the file has another key")
		}
	}
	if n, ok := r.variable("DEBUG"); ok {
		var debug bool
		boolean(&debug).read(n)
		doc.Server.Debug = doc.Server.Debug || debug
	}
}

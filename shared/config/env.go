package config

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// portWithoutFile is the port when no file is loaded (C-01).
const portWithoutFile = 8000

// applyServer takes the settings that the environment may give beside a file: the admin key and the debug switch.
func (e Environment) applyServer(f *findings, s *Server) {
	if key, ok := e.Lookup("ADMIN_API_KEY"); ok && strings.TrimSpace(key) != "" {
		s.AdminKey = Secret(strings.TrimSpace(key))
	}
	e.setBool(f, "DEBUG", &s.Debug)
}

// loadEnvironment builds a configuration from the environment alone (section 13 of the requirements).
func (e Environment) loadEnvironment() (*Config, []Finding, error) {
	f := &findings{}
	doc := &document{Config: *defaults()}
	doc.Source = "environment"
	doc.Server.Port = portWithoutFile
	e.applyServer(f, &doc.Server)
	e.setString("HOST", &doc.Server.Host)
	e.setInt(f, "PORT", &doc.Server.Port, 1, 65535)
	e.setWord(f, "LOCALE", &doc.Server.Locale, "en", "ko")
	e.setWord(f, "LOG_LEVEL", &doc.Log.Level, "debug", "info", "warn", "error")
	e.setList("PROVIDER_PRIORITY", &doc.Routing.Priority)
	e.setInt(f, "MAX_TOKENS_FAST_MODEL", &doc.Routing.MaxTokensFast, 1, 1<<31-1)
	e.setList("FREE_MODELS", &doc.Routing.FreeModels)
	e.setList("PREMIUM_MODELS", &doc.Routing.PremiumModels)
	e.setInt(f, "MAX_RETRIES", &doc.Resilience.MaxRetries, 1, 100)
	e.setBool(f, "ENABLE_AUTO_WEB_FETCH", &doc.Web.Enabled)
	e.setList("SEARCH_PROVIDERS", &doc.Web.Search)
	e.setString("SEARXNG_BASE_URL", &doc.Web.SearxNGURL)
	e.setString("OPENSERP_BASE_URL", &doc.Web.OpenSERP.URL)
	e.setString("OPENSERP_ENGINE", &doc.Web.OpenSERP.Engine)
	e.setString("EMBEDDING_MODEL", &doc.Web.Intent.EmbeddingModel)
	e.setInt(f, "SESSION_RETENTION_DAYS", &doc.Sessions.RetentionDays, 1, 365)
	e.setInt(f, "SESSION_COMPACT_THRESHOLD", &doc.Sessions.CompactThreshold, 1, 1<<31-1)
	e.setInt(f, "SESSION_RECENT_WINDOW", &doc.Sessions.RecentWindow, 1, 1<<31-1)
	e.setString("NATS_URL", &doc.NATS.URL)
	if db, ok := e.Lookup("DATABASE_URL"); ok && db != "" {
		doc.Sessions.Database = Secret(db)
	}
	for _, id := range presetOrder {
		e.addPreset(f, doc, id)
	}
	c := doc.resolve(f)
	warnings, err := f.split()
	if err != nil {
		return nil, warnings, err
	}
	return c, warnings, nil
}

// addPreset adds a well-known provider when the environment has keys or an address for it.
func (e Environment) addPreset(f *findings, doc *document, id string) {
	pre := presets[id]
	d := &decoder{findings: f, lookup: e.Lookup}
	p := rawProvider{node: node{Node: scalar(""), d: d, path: id}, tier: "unknown"}
	p.ID = id
	var keys []string
	if pre.keysVar != "" {
		e.setList(pre.keysVar, &keys)
		p.keysGiven = true
		p.node.path = pre.keysVar
	}
	if pre.urlVar != "" {
		e.setString(pre.urlVar, &p.URL)
		p.node.path = pre.urlVar
	}
	for _, k := range keys {
		p.addKey(0, node{Node: scalar(k), d: d, path: p.node.path})
	}
	for i := range p.Keys {
		p.Keys[i].Tier = p.tier
	}
	if len(p.Keys) > 0 || p.URL != "" {
		doc.rawProviders = append(doc.rawProviders, p)
	}
}

func (e Environment) setString(name string, p *string) {
	if v, ok := e.Lookup(name); ok && strings.TrimSpace(v) != "" {
		*p = strings.TrimSpace(v)
	}
}

func (e Environment) setWord(f *findings, name string, p *string, words ...string) {
	var v string
	e.setString(name, &v)
	switch v = strings.ToLower(v); {
	case v == "":
	case slices.Contains(words, v):
		*p = v
	default:
		f.add(true, 0, name, "must be one of %s, is %q", strings.Join(words, ", "), short(v))
	}
}

func (e Environment) setInt(f *findings, name string, p *int, low, high int) {
	var v string
	e.setString(name, &v)
	if v == "" {
		return
	}
	i, err := strconv.Atoi(v)
	if err != nil || i < low || i > high {
		f.add(true, 0, name, "must be a whole number from %d to %d, is %q", low, high, short(v))
		return
	}
	*p = i
}

func (e Environment) setBool(f *findings, name string, p *bool) {
	var v string
	e.setString(name, &v)
	switch strings.ToLower(v) {
	case "":
	case "1", "true", "yes", "on":
		*p = true
	case "0", "false", "no", "off":
		*p = false
	default:
		f.add(true, 0, name, "must be true or false, is %q", short(v))
	}
}

// setList reads a comma-separated list or a JSON array.
func (e Environment) setList(name string, p *[]string) {
	var v string
	e.setString(name, &v)
	if v == "" {
		return
	}
	var list []string
	if json.Unmarshal([]byte(v), &list) != nil {
		list = strings.Split(v, ",")
	}
	out := list[:0]
	for _, item := range list {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	*p = out
}

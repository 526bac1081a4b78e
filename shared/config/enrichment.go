package config

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Web is the enricher's part: how text from the web gets into requests.
type Web struct {
	Enabled    bool
	Backend    string // inprocess | mcp
	MCP        MCP
	Search     []string // engines in order; each is known and has an address
	SearxNGURL string
	OpenSERP   OpenSERP
	Engines    map[string]string // engine -> other base URL
	MaxChars   int
	CacheTTL   time.Duration
	Deadline   time.Duration
	Browser    string   // auto | never | always
	AllowHosts []string // lower case; exceptions to the guard against internal addresses
	Intent     Intent
}

// MCP is a search server that speaks the Model Context Protocol.
type MCP struct {
	URL      string
	Token    Secret
	Fallback bool // to the gateway's own search when the server fails
	Timeout  time.Duration
}

// OpenSERP is a search API.
type OpenSERP struct{ URL, Engine string }

// Intent is the classifier of questions that need the web.
type Intent struct {
	EmbeddingModel string
	EmbeddingURL   string
	Threshold      float64 // similarity from 0 to 1
	PatternsDir    string
	KeywordsDir    string
}

func defaultWeb() Web {
	return Web{
		Enabled: true, Backend: "inprocess", MCP: MCP{Fallback: true, Timeout: 30 * time.Second}, Search: []string{"duckduckgo", "bing"},
		OpenSERP: OpenSERP{Engine: "google"}, Engines: map[string]string{}, MaxChars: 6000, CacheTTL: 24 * time.Hour,
		Deadline: 45 * time.Second, Browser: "auto", AllowHosts: []string{},
		Intent: Intent{EmbeddingModel: "bge-m3:latest", EmbeddingURL: "http://localhost:11434", Threshold: 0.58},
	}
}

func (doc *document) web(n node) {
	w := &doc.Web
	n.fields(map[string]func(node){
		"enabled": boolean(&w.Enabled), "backend": oneOf(&w.Backend, "inprocess", "mcp"), "search": list(&w.Search),
		"searxng_url": web(&w.SearxNGURL), "engines": w.readEngines, "max_chars": integer(&w.MaxChars, 1, math.MaxInt32),
		"cache_ttl": duration(&w.CacheTTL), "deadline": positive(&w.Deadline), "browser": oneOf(&w.Browser, "auto", "never", "always"),
		"allow_hosts": w.readAllowHosts,
		"mcp": func(n node) {
			n.fields(map[string]func(node){
				"url": web(&w.MCP.URL), "token": secret(&w.MCP.Token), "fallback": boolean(&w.MCP.Fallback), "timeout": positive(&w.MCP.Timeout),
			})
		},
		"openserp": func(n node) {
			n.fields(map[string]func(node){"url": web(&w.OpenSERP.URL), "engine": text(&w.OpenSERP.Engine)})
		},
		"intent": func(n node) {
			i := &w.Intent
			n.fields(map[string]func(node){
				"embedding_model": text(&i.EmbeddingModel), "embedding_url": web(&i.EmbeddingURL), "threshold": number(&i.Threshold, 0, 1),
				"patterns_dir": expanded(&i.PatternsDir), "keywords_dir": expanded(&i.KeywordsDir),
			})
		},
	})
}

func engines() []string { return []string{"duckduckgo", "bing", "openserp", "searxng"} }

func (w *Web) readEngines(n node) {
	w.Engines = map[string]string{}
	n.pairs(func(key, value node) {
		if !slices.Contains(engines(), key.Value) {
			value.warn("unknown search engine, ignored (known: %s)", strings.Join(engines(), ", "))
			return
		}
		var base string
		if web(&base)(value); base != "" {
			w.Engines[key.Value] = base
		}
	})
}

// readAllowHosts takes names and addresses as a URL has them, without scheme, port and brackets.
func (w *Web) readAllowHosts(n node) {
	w.AllowHosts = nil
	n.words(func(item node) {
		host, ok := item.expanded()
		if !ok {
			return
		}
		if !validHost(host) {
			item.fail("must be a host name or an IP address (got %s)", item.shown())
			return
		}
		w.AllowHosts = append(w.AllowHosts, strings.ToLower(host))
	})
}

// checkWeb drops the search engines that can't be asked, and looks for addresses that are needed (C-41).
func (doc *document) checkWeb() {
	w := &doc.Web
	address := map[string]string{
		"duckduckgo": "built in", "bing": "built in", "openserp": w.OpenSERP.URL + w.Engines["openserp"], "searxng": w.SearxNGURL + w.Engines["searxng"],
	}
	w.Search = slices.DeleteFunc(w.Search, func(engine string) bool {
		where, known := address[engine]
		switch {
		case !known:
			doc.warn("web.search", "there is no search engine %q, ignored (known: %s)", short(engine), strings.Join(engines(), ", "))
		case where == "":
			doc.warn("web.search", "the search engine %s has no address, ignored", engine)
		}
		return where == ""
	})
	if w.Backend == "mcp" && w.MCP.URL == "" && !doc.given("web.mcp.url") {
		doc.fail("web.mcp.url", "is missing: backend mcp needs it")
	}
}

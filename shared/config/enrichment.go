package config

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Web is the enricher's part: how text from the web gets into requests.
type Web struct {
	Enabled     bool
	Backend     string // inprocess | mcp
	MCP         MCP
	MCPServer   MCPServer
	Search      []string // engines in order; each is known and has an address
	SearxNGURL  string
	OpenSERP    OpenSERP
	Engines     map[string]string // engine -> other base URL
	MaxChars    int
	CacheTTL    time.Duration
	Deadline    time.Duration
	Browser     string   // auto | never | always
	BrowserPath string   // of Chromium; "" = the usual names are looked for
	AllowHosts  []string // lower case; exceptions to the guard against internal addresses
	Intent      Intent
}

// MCP is a search server that speaks the Model Context Protocol.
type MCP struct {
	URL      string
	Token    Secret
	Fallback bool // to the gateway's own search when the server fails
	Timeout  time.Duration
}

// MCPServer is where the gateway's own search is offered to others.
type MCPServer struct {
	Listen string // host:port
	Token  Secret
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
	KeywordModel   string // "" = keywords are learned without one
}

func (w *Web) settings() []setting {
	m, i := &w.MCP, &w.Intent
	return []setting{
		key("enabled", boolean(&w.Enabled), "true", "fetch and search on the gateway's own account. Off, only requests that ask for it "+
			"(`web_fetch`, `has_search`) get text").env("ENABLE_AUTO_WEB_FETCH"),
		key("backend", oneOf(&w.Backend, "inprocess", "mcp"), "inprocess", "who fetches and searches").env("WEB_BACKEND"),
		key("mcp", mapping(
			key("url", web(&m.URL), "", "its address").env("SEARCH_MCP_URL"),
			key("token", credential(&m.Token), "", "bearer token for it").env("SEARCH_MCP_TOKEN"),
			key("fallback", boolean(&m.Fallback), "true", "does the work in process when it fails").env("SEARCH_MCP_FALLBACK"),
			key("timeout", positive(&m.Timeout), "30s", "for one call of it"),
		), "", "a server that speaks MCP over streamable HTTP, for `backend: mcp`"),
		key("mcp_server", mapping(
			key("listen", hostPort(&w.MCPServer.Listen), "127.0.0.1:8765", "where it listens").env("MCP_SERVER_LISTEN"),
			key("token", credential(&w.MCPServer.Token), "", "bearer token that its clients must have; only on a loopback address it may be empty").env("MCP_SERVER_TOKEN"),
		), "", "the gateway's own search and reading of pages as an MCP server, which `hydrallm mcp` and `enricher mcp` start"),
		key("search", list(&w.Search), "[duckduckgo, bing]", "search engines in order; also `openserp` and `searxng`, which need an address").env("SEARCH_PROVIDERS"),
		key("searxng_url", web(&w.SearxNGURL), "", "a SearxNG server").env("SEARXNG_BASE_URL"),
		key("openserp", mapping(
			key("url", web(&w.OpenSERP.URL), "", "its address").env("OPENSERP_BASE_URL"),
			key("engine", text(&w.OpenSERP.Engine), "google", "the engine that it asks").env("OPENSERP_ENGINE"),
		), "", "an OpenSERP server"),
		key("engines", kind{name: "mapping of addresses", expands: true, at: &w.Engines, read: w.readEngines}, "{}", "other base addresses of search engines, by name"),
		key("max_chars", integer(&w.MaxChars, 1, math.MaxInt32), "6000", "most characters of web text in one request"),
		key("cache_ttl", duration(&w.CacheTTL), "24h", "how long fetched pages are kept; 0 for not at all").
			envAs("WEB_CACHE_TTL_HOURS", whole(&w.CacheTTL, time.Hour, 0)),
		key("deadline", positive(&w.Deadline), "45s", "for all web work of one request"),
		key("browser", oneOf(&w.Browser, "auto", "never", "always"), "auto", "use of a headless browser: for pages that have no text without their scripts, never, or always"),
		key("browser_path", path(&w.BrowserPath), "", "Chromium; empty looks for it by its usual names").env("BROWSER_PATH"),
		key("allow_hosts", listOf(&w.AllowHosts, "list of hosts", allowedHost), "[]",
			"host names and addresses, as written in a URL, that may be fetched although they are internal"),
		key("intent", mapping(
			key("embedding_model", text(&i.EmbeddingModel), "bge-m3:latest", "model for comparing questions").env("EMBEDDING_MODEL"),
			key("embedding_url", web(&i.EmbeddingURL), "http://localhost:11434", "Ollama server of that model"),
			key("threshold", number(&i.Threshold, 1), "0.58", "similarity from which on a question counts"),
			key("patterns_dir", path(&i.PatternsDir), "", "directory with patterns; empty for the built-in ones"),
			key("keywords_dir", path(&i.KeywordsDir), "", "directory with files of keywords to begin with"),
			key("keyword_model", text(&i.KeywordModel), "", "model on that server that takes keywords from missed questions; empty for a simple rule").
				env("KEYWORD_EXTRACTION_MODEL"),
		), "", "tells which questions need the web"),
	}
}

func engines() []string { return []string{"duckduckgo", "bing", "openserp", "searxng"} }

func (w *Web) readEngines(n node) {
	w.Engines = map[string]string{}
	n.pairs(func(key, value node) {
		if !slices.Contains(engines(), key.Value) {
			value.warn("unknown search engine, ignored%s (known: %s)", suggestion(key.Value, engines()), strings.Join(engines(), ", "))
			return
		}
		var base string
		if web(&base).read(value); base != "" {
			w.Engines[key.Value] = base
		}
	})
}

// allowedHost gives a name or an address as a URL has it, without scheme, port and brackets.
func allowedHost(n node) (string, bool) {
	host, ok := n.host()
	return strings.ToLower(host), ok
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
			doc.warn("web.search", "there is no search engine %q, ignored%s (known: %s)", short(engine), suggestion(engine, engines()), strings.Join(engines(), ", "))
		case where == "":
			doc.warn("web.search", "the search engine %s has no address, ignored", engine)
		}
		return where == ""
	})
	if w.Backend == "mcp" && w.MCP.URL == "" && !doc.given("web.mcp.url") {
		doc.fail("web.mcp.url", "is missing: backend mcp needs it")
	}
}

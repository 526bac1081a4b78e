package config

import (
	"encoding/json"
	"net"
	"net/url"
	"strconv"
	"time"
)

// Config is a whole, resolved configuration. It is immutable after Load and may be shared.
type Config struct {
	Source string // path of the file, or "environment"

	Server     Server
	Providers  []Provider
	Upstreams  []Upstream
	Models     []Model
	Routing    Routing
	Resilience Resilience
	Web        Web
	Sessions   Sessions
	NATS       NATS
	Log        Log
	Telemetry  Telemetry

	providers map[string]int
	upstreams map[string]int
	models    map[string]int
}

// Server is the client's side.
type Server struct {
	Host         string
	Port         int
	MaxBodyBytes int
	ClientKeys   []Secret
	AdminKey     Secret // "" = admin routes are closed unless Debug
	Debug        bool
	CORSOrigins  []string
	QueueTimeout time.Duration
	DrainTimeout time.Duration
	ToolInstall  bool
	Locale       string // en | ko
}

// Bind is the address to listen on.
func (s Server) Bind() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// Key is one credential of a provider.
type Key struct {
	Value Secret
	Tier  string
}

// Provider is a place to call.
type Provider struct {
	ID             string
	Dialect        string
	URL            string // without a slash at the end; with the version path
	Keys           []Key  // none = no Authorization header
	Pooled         bool   // configured with keys, so that its keys have cooldowns (C-11)
	Limit          int    // default limit of each upstream; 0 = unlimited
	SessionHeader  string
	ThinkTags      ThinkTags
	Patch          json.RawMessage // JSON object in the order of the file, or nil
	Headers        map[string]Secret
	DefaultModels  DefaultModels
	HeadersTimeout time.Duration
	RequestTimeout time.Duration
}

// DefaultModels are the models for automatic routing until discovery knows better.
type DefaultModels struct{ Free, Premium string }

// ThinkTags says what happens to <think> blocks.
type ThinkTags string

// Modes of ThinkTags.
const (
	ThinkOff   ThinkTags = "off"
	ThinkSplit ThinkTags = "split"
	ThinkStrip ThinkTags = "strip"
)

// Upstream is one model at a provider.
type Upstream struct {
	ID        string
	Provider  string
	Model     string
	Limit     int // effective limit of concurrent calls; 0 = unlimited
	ThinkTags ThinkTags
	Patch     json.RawMessage
	Cost      *float64
}

// Model is a name that clients see.
type Model struct {
	Name      string
	Upstreams []string // known ids in order of priority; none = not usable, 404
	Patch     json.RawMessage
	Pipeline  bool
}

// Routing steers automatic routing.
type Routing struct {
	Priority      []string
	MaxTokensFast int
	Fast          []string
	Large         string
	FinalFallback string
	Aliases       map[string]string
	FreeModels    []string
	PremiumModels []string
}

// Resilience holds the limits of the four layers.
type Resilience struct {
	MaxHops         int
	MaxRetries      int
	GateTimeout     time.Duration
	HeadersTimeout  time.Duration
	RequestTimeout  time.Duration
	IdleTimeout     time.Duration
	RequestDeadline time.Duration
	ProviderBreaker Breaker
	ChannelBreaker  Breaker
	Cooldowns       Cooldowns
	ProbeInterval   time.Duration
}

// Breaker holds the settings of a circuit breaker: either Consecutive, or Failures within Window.
type Breaker struct {
	Consecutive int
	Failures    int
	Window      time.Duration
	OpenFor     time.Duration
	HalfOpen    bool
}

// Cooldowns are how long a key rests by category.
type Cooldowns struct{ Forbidden, Quota, Other, Max time.Duration }

// Web is the enricher's part.
type Web struct {
	Enabled    bool
	Backend    string
	MCP        MCP
	Search     []string
	SearxNGURL string
	OpenSERP   OpenSERP
	Engines    map[string]string
	MaxChars   int
	CacheTTL   time.Duration
	Deadline   time.Duration
	Browser    string
	AllowHosts []string
	Intent     Intent
}

// MCP is a search server that speaks the Model Context Protocol.
type MCP struct {
	URL      string
	Token    Secret
	Fallback bool
	Timeout  time.Duration
}

// OpenSERP is a search API.
type OpenSERP struct{ URL, Engine string }

// Intent is the classifier of web questions.
type Intent struct {
	EmbeddingModel string
	EmbeddingURL   string
	Threshold      float64
	PatternsDir    string
	KeywordsDir    string
}

// Sessions is the session-writer's part.
type Sessions struct {
	Database         Secret
	CompactThreshold int
	RecentWindow     int
	RetentionDays    int
	MaxSessions      int
}

// NATS says where the server is.
type NATS struct {
	URL         string // "" = embedded
	Listen      string // address of the embedded server, "" = none
	Credentials string
	StoreDir    string
	Replicas    int
	WorkOnDisk  bool
}

// Log is the log output.
type Log struct{ Level, Format, File string }

// Telemetry is the trace output.
type Telemetry struct{ OTLPEndpoint, ServiceName string }

// Provider gives a provider by id.
func (c *Config) Provider(id string) (Provider, bool) { return lookup(c.Providers, c.providers, id) }

// Upstream gives an upstream by id.
func (c *Config) Upstream(id string) (Upstream, bool) { return lookup(c.Upstreams, c.upstreams, id) }

// Model gives a catalogue model by its exact name.
func (c *Config) Model(name string) (Model, bool) { return lookup(c.Models, c.models, name) }

func lookup[T any](list []T, index map[string]int, key string) (T, bool) {
	if i, ok := index[key]; ok {
		return list[i], true
	}
	var none T
	return none, false
}

// Usable says whether requests for the model can be served.
func (m Model) Usable() bool { return len(m.Upstreams) > 0 }

// Empty says that there is nothing to call: neither an upstream nor a provider with keys or a local address of its own.
func (c *Config) Empty() bool {
	return len(c.Upstreams) == 0 && len(c.Providers) == 0
}

// EmptyHint tells what to do about an empty configuration.
const EmptyHint = "no provider is configured: set GEMINI_KEYS, GROQ_KEYS, CEREBRAS_KEYS or OLLAMA_BASE_URL, " +
	"or name a configuration file in CONFIG_PATH"

// Secrets gives every secret of the configuration, for scrubbing text that comes from elsewhere.
func (c *Config) Secrets() []string {
	var all []string
	add := func(s Secret) {
		if s != "" {
			all = append(all, s.Reveal())
		}
	}
	add(c.Server.AdminKey)
	for _, k := range c.Server.ClientKeys {
		add(k)
	}
	for _, p := range c.Providers {
		for _, k := range p.Keys {
			add(k.Value)
		}
		for _, v := range p.Headers {
			add(v)
		}
		if u, err := url.Parse(p.URL); err == nil {
			for _, values := range u.Query() {
				for _, v := range values {
					add(Secret(v))
				}
			}
		}
	}
	add(c.Web.MCP.Token)
	return all
}

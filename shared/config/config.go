package config

import (
	"net/url"
	"strings"
)

// FromEnvironment is the Source of a configuration without a file.
const FromEnvironment = "environment"

// Config is a whole, resolved configuration. It may be shared between goroutines, none of which changes it.
type Config struct {
	Source string // absolute path of the file, or FromEnvironment

	OldPlaces []string // of data: paths that are used because an older version put them there, which warnings name

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

	providerAt map[string]int // positions in the lists
	upstreamAt map[string]int
	modelAt    map[string]int
	origins    map[string]Origin // of live settings with other values than the default, by path
	bare       bool              // the environment names no provider
}

// Provider gives a provider by id.
func (c *Config) Provider(id string) (Provider, bool) { return lookup(c.Providers, c.providerAt, id) }

// Upstream gives an upstream by id.
func (c *Config) Upstream(id string) (Upstream, bool) { return lookup(c.Upstreams, c.upstreamAt, id) }

// Model gives a configured model by its exact name, also one that is not usable.
func (c *Config) Model(name string) (Model, bool) { return lookup(c.Models, c.modelAt, name) }

func lookup[T any](list []T, index map[string]int, key string) (T, bool) {
	if i, ok := index[key]; ok {
		return list[i], true
	}
	var none T
	return none, false
}

// Empty says that nobody configured anything to call: the file has no provider, or the environment names none. Even then a start without a
// file tries a local Ollama.
func (c *Config) Empty() bool { return c.bare || len(c.Providers) == 0 }

// EmptyHint tells what to do about an empty configuration. It is "" for others.
func (c *Config) EmptyHint() string {
	switch {
	case c.bare:
		return "nothing is configured, so that only a local Ollama at its usual address is asked: set GEMINI_API_KEY, GROQ_API_KEY, OPENAI_API_KEY or the " +
			"like, or OLLAMA_BASE_URL, or write a config.yaml. hydrallm demo shows the gateway without any of them"
	case c.Empty():
		return "the file has no providers, so that there is nothing to answer requests: add some, such as providers: [{id: groq, key: \"${GROQ_API_KEY}\"}], " +
			"or remove the file, and the keys in the environment (GEMINI_API_KEY, GROQ_API_KEY, OPENAI_API_KEY or the like) count"
	default:
		return ""
	}
}

// Secrets gives every secret of the configuration in clear, for scrubbing text that comes from elsewhere. It may hold duplicates.
func (c *Config) Secrets() []string {
	var all []string
	add := func(list ...Secret) {
		for _, s := range list {
			if s != "" {
				all = append(all, s.Reveal())
			}
		}
	}
	add(c.Server.AdminKey, c.Server.PreviousKey, c.Web.MCP.Token, c.Web.MCPServer.Token)
	add(c.Server.ClientKeys...)
	for _, p := range c.Providers {
		for _, k := range p.Keys {
			if !placeholder(k.Value.Reveal()) {
				add(k.Value)
			}
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
	if u, err := url.Parse(c.Sessions.Database.Reveal()); err == nil && !strings.HasPrefix(u.Scheme, "sqlite") {
		password, _ := u.User.Password()
		add(Secret(password))
	}
	return all
}

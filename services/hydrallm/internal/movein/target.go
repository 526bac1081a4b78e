package movein

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// target is the configuration that is made, with the keys that an importer may set (docs/configuration.md has their meaning).
type target struct {
	Server     server      `yaml:"server,omitempty"`
	Providers  []*provider `yaml:"providers"`
	Upstreams  []*upstream `yaml:"upstreams,omitempty"`
	Models     []*model    `yaml:"models,omitempty"`
	Routing    routing     `yaml:"routing"`
	Resilience resilience  `yaml:"resilience,omitempty"`
	Log        logging     `yaml:"log,omitempty"`
}

type server struct {
	Host           string   `yaml:"host,omitempty"`
	Port           int      `yaml:"port,omitempty"`
	MaxBodyBytes   int      `yaml:"max_body_bytes,omitempty"`
	ClientKeys     []string `yaml:"client_keys,omitempty"`
	ClientAccess   string   `yaml:"client_access,omitempty"`
	TrustedProxies []string `yaml:"trusted_proxies,omitempty"`
	AdminKey       string   `yaml:"admin_key,omitempty"`
	CORSOrigins    []string `yaml:"cors_origins,omitempty"`
	DrainTimeout   span     `yaml:"drain_timeout,omitempty"`
}

type provider struct {
	ID             string            `yaml:"id"`
	Dialect        string            `yaml:"dialect,omitempty"`
	URL            string            `yaml:"url,omitempty"`
	Key            string            `yaml:"key,omitempty"`
	Keys           any               `yaml:"keys,omitempty"` // a list, or a variable that holds one
	MaxConcurrency int               `yaml:"max_concurrency,omitempty"`
	Headers        map[string]string `yaml:"headers,omitempty"`
	Patch          *yaml.Node        `yaml:"patch,omitempty"`
	HeadersTimeout span              `yaml:"headers_timeout,omitempty"`
	RequestTimeout span              `yaml:"request_timeout,omitempty"`
}

type upstream struct {
	ID             string     `yaml:"id"`
	Provider       string     `yaml:"provider"`
	Model          string     `yaml:"model"`
	MaxConcurrency int        `yaml:"max_concurrency,omitempty"`
	Completions    string     `yaml:"completions,omitempty"`
	Patch          *yaml.Node `yaml:"patch,omitempty"`
	Defaults       *yaml.Node `yaml:"defaults,omitempty"`
	Price          *price     `yaml:"price,omitempty,flow"`
}

type price struct {
	Input       float64  `yaml:"input"`
	Output      float64  `yaml:"output"`
	CachedInput *float64 `yaml:"cached_input,omitempty"`
}

type model struct {
	Name      string   `yaml:"name"`
	Upstreams []string `yaml:"upstreams,flow"`
}

type routing struct {
	Priority      []string          `yaml:"priority,omitempty,flow"`
	FinalFallback string            `yaml:"final_fallback"`
	Aliases       map[string]string `yaml:"aliases"`
}

type resilience struct {
	MaxHops        int     `yaml:"max_hops,omitempty"`
	MaxRetries     int     `yaml:"max_retries,omitempty"`
	HeadersTimeout span    `yaml:"headers_timeout,omitempty"`
	RequestTimeout span    `yaml:"request_timeout,omitempty"`
	IdleTimeout    span    `yaml:"idle_timeout,omitempty"`
	Breaker        breaker `yaml:"breaker,omitempty"`
}

type breaker struct {
	Channel channel `yaml:"channel,omitempty,flow"`
}

type channel struct {
	Failures int  `yaml:"failures,omitempty"`
	Window   span `yaml:"window,omitempty"`
	OpenFor  span `yaml:"open_for,omitempty"`
}

type logging struct {
	Level  string `yaml:"level,omitempty"`
	Format string `yaml:"format,omitempty"`
}

// span is a duration, written with its largest whole unit.
type span time.Duration

// MarshalYAML writes 90s, 5m or 250ms.
func (s span) MarshalYAML() (any, error) {
	d := time.Duration(s)
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d%unit.of == 0 {
			return fmt.Sprintf("%d%s", d/unit.of, unit.name), nil
		}
	}
	return fmt.Sprintf("%dms", d/time.Millisecond), nil
}

// Defaults of ours that timeouts are measured by (docs/configuration.md, resilience).
const (
	gateTimeout    = 30 * time.Second
	headersDefault = 240 * time.Second
	requestDefault = 300 * time.Second
)

// timeouts fits the time until headers and the time of a whole call to each other, either of which may be 0 for none: a call must be allowed to take
// longer than its headers and the gate together.
func timeouts(headers, total time.Duration) (h, t span) {
	switch {
	case total == 0 && headers+gateTimeout < requestDefault:
	case total == 0:
		total = 2 * headers
	case total > cmp.Or(headers, headersDefault)+gateTimeout:
	case total > 2*gateTimeout: // the whole call has its time; the headers must come before
		headers = total - gateTimeout - time.Second
	default:
		headers = total
		total = max(2*gateTimeout, 2*total) + time.Second
	}
	return span(headers), span(total)
}

// encode writes the configuration as YAML.
func (t *target) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(t); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return b.Bytes(), nil
}

package process

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/topology"
)

// Settings is a loaded configuration with what is odd about it.
type Settings struct {
	*config.Config
	Warnings []config.Finding

	// Again reads the same configuration again; nil = there is no file to be read.
	Again func() (*config.Config, error)

	// Sockets listen for the clients already; none = the process listens itself. They belong to the process, for as long as it lives.
	Sockets []*os.File
}

// Overrides are the choices of the command line; they win over file and environment.
type Overrides struct {
	Debug bool
	Port  int // 0 = not given
}

// Load reads the configuration of this process. An error names every fault; the warnings are there all the same.
func Load(o Overrides) (Settings, error) {
	env, err := config.Process()
	if err != nil {
		return Settings{}, err
	}
	return LoadFrom(env, o)
}

// LoadFrom is Load with a given environment.
func LoadFrom(env config.Environment, o Overrides) (Settings, error) {
	given := env
	if o.Debug {
		lookup := env.Lookup
		env.Lookup = func(name string) (string, bool) {
			if name == "DEBUG" {
				return "true", true
			}
			return lookup(name)
		}
	}
	c, warnings, err := config.Load(env)
	if err != nil {
		return Settings{Warnings: warnings}, err
	}
	if o.Port != 0 {
		c.Server.Port = o.Port
	}
	s := Settings{Config: c, Warnings: warnings}
	if c.Source != config.FromEnvironment {
		s.Again = func() (*config.Config, error) {
			again, err := LoadFrom(given, o)
			return again.Config, err
		}
	}
	return s, nil
}

// LogLevel is what is logged. Debug mode forces the debug level.
func LogLevel(c *config.Config) string {
	if c.Server.Debug {
		return "debug"
	}
	return c.Log.Level
}

// LogConfig says how to log.
func (s Settings) LogConfig() telemetry.LogConfig {
	return telemetry.LogConfig{Level: LogLevel(s.Config), Format: s.Log.Format, File: s.Log.File}
}

// Connection is how a service reaches its NATS server, and what it wants to find there.
func (s Settings) Connection(service string) bus.Config {
	return bus.Config{
		URL: s.NATS.URL, Name: service, Topology: s.topology(service),
		Identity: bus.Identity{Credentials: s.NATS.Credentials, NkeySeed: s.NATS.NkeySeed, CA: s.NATS.CA, Cert: s.NATS.Cert, Key: s.NATS.Key},
	}
}

func (s Settings) topology(service string) topology.Config {
	return topology.Config{Service: service, Replicas: s.NATS.Replicas, WorkOnDisk: s.NATS.WorkOnDisk, WebCacheTTL: s.Web.CacheTTL}
}

// Report logs what was configured.
func (s Settings) Report(ctx context.Context, log *slog.Logger) {
	for _, w := range s.Warnings {
		telemetry.Event(ctx, log, slog.LevelWarn, "config: warning: "+w.String())
	}
	if hint := s.EmptyHint(); hint != "" {
		telemetry.Event(ctx, log, slog.LevelWarn, "config: warning: "+hint)
	}
	telemetry.Event(ctx, log, slog.LevelInfo, "config:",
		"providers", len(s.Providers), "upstreams", len(s.Upstreams), "models", len(s.Models), "source", s.Source)
	telemetry.Event(ctx, log, slog.LevelInfo, "upstream:",
		"request_timeout", fmt.Sprintf("%dms", s.Resilience.RequestTimeout.Milliseconds()))
}

package ingress

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/ingress/internal/modellist"
	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/certificate"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/process"
	"hydrallm/shared/seal"
	"hydrallm/shared/settings"
	"hydrallm/shared/topology"
)

// Model is an entry of the model list.
type Model = modellist.Model

// Provider is a provider whose models are listed.
type Provider = modellist.Provider

// Config is what an ingress needs to know.
type Config struct {
	ID           string            // of this process: one token of a NATS subject, unique among all ingresses
	Addr         string            // host:port to listen on
	TLS          certificate.Files // which connections speak TLS with; none = they do not
	MinTLS       uint16            // the oldest version that they may speak; 0 = tls.VersionTLS12
	Sockets      []*os.File        // that listen already, in the place of Addr; the caller owns them
	MaxBody      int               // bytes of a request body, decompressed; 0 = 32 MiB
	MaxConns     int               // connections at the same time; 0 = unlimited
	StopPause    time.Duration     // from the begin of a stop, which /readyz tells, to the closing of the port
	QueueTimeout time.Duration     // how long a request waits for a worker of each stage; 0 = 30s
	Lifetime     time.Duration     // of a request in the background; 0 = 1h
	Deadline     time.Duration     // for all stages of a request until its answer begins; 0 = none
	PingAfter    time.Duration     // after so long a wait for its beginning a stream gets status line and comments; 0 = never
	Heartbeat    time.Duration     // after so long a silence a stream gets a comment; 0 = 15s
	ClientKeys   []string          // none = everyone may call
	ClientAccess string            // auto | keys | open; "" = auto
	Proxies      []netip.Prefix    // whose X-Forwarded-For tells the address of a client
	Zone         *time.Location    // in which budgets begin at midnight; nil = that of the process
	AdminKey     string            // "" = the admin routes are closed unless Debug
	Debug        bool
	CORSOrigins  []string         // of browsers that may call; "*" = all
	Models       []Model          // of the configuration; they win over others
	Pipelines    []string         // ids of those that get text from the web unasked (C-03)
	AutoWeb      bool             // requests get it unasked
	Providers    []Provider       // configured ones; none = only Models are listed
	Automatic    []string         // ids of those that automatic routing may ask; none = it does not work, and is not listed
	Stages       []contract.Stage // optional stages that requests may be sent through: session, analyzed
	Stores       bool             // responses may be stored; it needs the stage session
	Docs         bool             // the documents are served below /docs
	ToolInstall  bool             // operators may have tools installed on this machine
	Environ      []string         // of the programs that does it, such as os.Environ(); keys are left out
	Settings     *settings.View   // the configuration as it is now; nil = the default one, which does not change
	Clock        func() time.Time // of the limits of keys; nil = time.Now
	Demo         Demo             // nil but in a demo
	Version      string
	Gatherer     prometheus.Gatherer // what /metrics shows; nil = nothing
}

const (
	defaultMaxBody      = 32 << 20
	defaultQueueTimeout = 30 * time.Second
	defaultLifetime     = time.Hour
	defaultHeartbeat    = 15 * time.Second
)

func (c *Config) setDefaults() {
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.QueueTimeout == 0 {
		c.QueueTimeout = defaultQueueTimeout
	}
	if c.Lifetime == 0 {
		c.Lifetime = defaultLifetime
	}
	if c.MinTLS == 0 {
		c.MinTLS = tls.VersionTLS12
	}
	if c.Settings == nil {
		c.Settings = settings.New(&config.Config{}, slog.New(slog.DiscardHandler))
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Zone == nil {
		c.Zone = time.Local
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = defaultHeartbeat
	}
}

// local is the address of the gateway for programs on the same machine.
func (c *Config) local() string {
	_, port, err := net.SplitHostPort(c.Addr)
	if err != nil { // then it can't listen either
		return ""
	}
	scheme := "http"
	if c.TLS != (certificate.Files{}) {
		scheme = "https"
	}
	return scheme + "://127.0.0.1:" + port
}

// Validate reports every fault of the configuration.
func (c *Config) Validate() error {
	var errs []error
	if c.ID == "" {
		errs = append(errs, errors.New("no id"))
	}
	if c.Addr == "" {
		errs = append(errs, errors.New("no address to listen on"))
	}
	if c.MaxBody < 0 || c.MaxConns < 0 {
		errs = append(errs, fmt.Errorf("a limit is negative: %d bytes, %d connections", c.MaxBody, c.MaxConns))
	}
	if c.QueueTimeout < 0 || c.Deadline < 0 || c.PingAfter < 0 || c.Heartbeat < 0 || c.Lifetime < 0 || c.StopPause < 0 {
		errs = append(errs, errors.New("a time limit is negative"))
	}
	return errors.Join(errs...)
}

// limits derives the limits of silence. Workers show themselves every third of AckWait, the first time after half of it at the latest, and a
// message whose worker died comes back after AckWait. What is missing of an answer is sent again if repairs is true, at once when the ingress hears of its worker.
func (c *Config) limits(repairs bool) pending.Limits {
	l := pending.Limits{
		Queue: c.QueueTimeout, Total: c.Deadline, Grace: topology.AckWait / 2, Lease: topology.AckWait, Silence: 3 * topology.AckWait, Heartbeat: c.Heartbeat,
	}
	if repairs {
		l.Repair = l.Silence
	}
	return l
}

// sealer gives what protects secrets on the bus, or nil without an admin key.
func (c *Config) sealer() func(plain []byte, context string) ([]byte, error) {
	if c.AdminKey == "" {
		return nil
	}
	return func(plain []byte, context string) ([]byte, error) { return seal.Seal(c.AdminKey, plain, context) }
}

// FromGateway takes what an ingress needs from the configuration of the gateway.
func FromGateway(g *config.Config) Config {
	c := Config{
		Addr: g.Server.Bind(), MaxBody: g.Server.MaxBodyBytes, QueueTimeout: g.Server.QueueTimeout, Deadline: g.Resilience.RequestDeadline,
		MaxConns: g.Server.MaxConns, StopPause: g.Server.StopPause, PingAfter: g.Server.PingAfter, AdminKey: g.Server.AdminKey.Reveal(),
		Lifetime: g.Server.Lifetime, Debug: g.Server.Debug, CORSOrigins: g.Server.CORSOrigins, Stages: []contract.Stage{contract.StageSession, contract.StageAnalyzed}, AutoWeb: g.Web.Enabled,
		TLS: certificate.Files{Cert: g.Server.TLS.Cert, Key: g.Server.TLS.Key}, MinTLS: g.Server.TLS.Version(), ClientAccess: g.Server.ClientAccess, Proxies: g.Server.TrustedProxies(), Zone: g.Server.Zone(),
		Automatic: g.Automatic(), Stores: g.Sessions.StoreResponses, ToolInstall: g.Server.ToolInstall, Docs: g.Server.Docs,
	}
	for _, k := range g.Server.ClientKeys {
		c.ClientKeys = append(c.ClientKeys, k.Reveal())
	}
	for _, m := range g.Models {
		if m.Usable() {
			c.Models = append(c.Models, Model{ID: m.Name, OwnedBy: modellist.OwnerGateway})
			if m.Pipeline {
				c.Pipelines = append(c.Pipelines, m.Name)
			}
		}
	}
	for _, p := range g.Providers {
		c.Providers = append(c.Providers, Provider{
			ID: p.ID, Agent: p.Agent(),
			Defaults: modelindex.Defaults{Free: p.DefaultModels.Free, Premium: p.DefaultModels.Premium},
		})
	}
	return c
}

// Build makes the service from what all services are built from.
func Build(p process.Parts) (lifecycle.Service, error) { return build(p, nil) }

func build(p process.Parts, demo Demo) (lifecycle.Service, error) {
	c := FromGateway(p.Config)
	c.Demo = demo
	c.ID, c.Version, c.Settings, c.Environ = p.ID, p.Version, p.Settings, os.Environ()
	c.Sockets = p.Sockets
	c.Gatherer, _ = p.Metrics.(prometheus.Gatherer)
	return New(c, p.Bus, p.Log, p.Metrics)
}

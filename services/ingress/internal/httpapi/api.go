// Package httpapi is the HTTP interface of the gateway: routes, limits and error bodies, and the way of a request into the pipeline and of its
// answer back to the client.
package httpapi

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"hydrallm/services/ingress/internal/auth"
	"hydrallm/services/ingress/internal/clientkey"
	"hydrallm/services/ingress/internal/openapi"
	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/query"
	"hydrallm/shared/settings"
	"hydrallm/shared/telemetry"
)

// Bus is what the interface needs of the pipeline; *bus.Bus is one.
type Bus interface {
	PublishWork(ctx context.Context, req *contract.Request, body []byte) error
	Credit(rid string, consumed uint64) error
	Ready() bool

	// Recorded answers.
	Record(ctx context.Context, req *contract.Request, note []byte) error
	Recorded(ctx context.Context, rid string) (*bus.Recording, error)
	Replay(rid string) *bus.Replay
	Play(ctx context.Context, rec *bus.Recording, take func(frames []byte) error) error
	CancelRecorded(ctx context.Context, rid string) error
	ForgetRecorded(ctx context.Context, rid string) error
	Claimed(ctx context.Context, key string) (bus.Claim, error)
	Claim(ctx context.Context, key string, last, next bus.Claim) error

	PublishFact(ctx context.Context, subj, id string, data []byte) error

	query.Bus
}

// Decisions keeps the decisions that are made here; *decisionlog.Log does.
type Decisions interface{ Note(r *contract.Request) }

// Config is what the interface is made of. All fields but Gatherer and Seal are required.
type Config struct {
	Ingress      string // id of this ingress on the bus
	MaxBody      int    // bytes
	QueueTimeout time.Duration
	Lifetime     time.Duration // of a request in the background
	PingAfter    time.Duration // from a request to the first sign of life of its stream; 0 = never
	Models       Models
	Configured   func() map[string]bool // names of the models of the configuration: whether text from the web applies to them unasked (C-03)
	AutoWeb      bool                   // text from the web is added to requests that do not ask for it
	Stages       []contract.Stage       // optional stages that requests may be sent through: session, analyzed
	Stores       bool                   // responses may be stored
	CORSOrigins  []string
	Docs         bool // the documents are served
	Version      string
	ToolInstall  bool // operators may install tools
	Installer    Installer
	Instances    func(ctx context.Context) ([]string, error) // ids of the services that run, in all processes
	Settings     *settings.View                              // the configuration as it is now

	Demo Demo // nil but in a demo

	TrustedProxies []netip.Prefix // whose X-Forwarded-For counts

	Bus         Bus
	Pending     *pending.Table
	Decisions   Decisions
	Clients     *auth.Clients
	ClientKeys  *clientkey.Book
	Gate        *clientkey.Gate
	Admin       *auth.Admin
	Dispatchers func() []string                                    // ids of the dispatchers that are there
	Stopping    func() bool                                        // whether answers should end their connections
	Queries     func() context.Context                             // of questions to services; it ends with the service
	Seal        func(plain []byte, context string) ([]byte, error) // protects secrets on the bus; nil = there is no admin key
	Gatherer    prometheus.Gatherer
	Metrics     *Metrics
	Log         *slog.Logger
	Tracer      trace.Tracer
}

// API answers requests. Its Handle is a fasthttp.RequestHandler.
type API struct {
	Config
	cors      *cors
	heads     heads
	banner    []byte
	document  func() ([]byte, error) // the description of the interface
	news      *news
	documents *documents // nil without them
	started   time.Time
	labels    *telemetry.ModelNames // label values of models
}

// New makes the interface.
func New(cfg Config) *API {
	a := &API{Config: cfg, cors: newCORS(cfg.CORSOrigins), banner: banner(cfg.Version, cfg.Docs), started: time.Now()}
	if cfg.Docs {
		a.documents = newDocuments()
	}
	a.document = sync.OnceValues(func() ([]byte, error) { return openapi.Document(cfg.Version) })
	a.news, a.labels = &news{api: a}, telemetry.NewModelNames(a.knows)
	return a
}

// Limits of the server.
const (
	readBuffer  = 16 << 10         // of each connection; also the limit of request line and headers
	writeBuffer = 8 << 10          // of each connection; what is larger passes it by
	headerTime  = 15 * time.Second // for the headers and the first part of a body, from the first byte
	idleTime    = 2 * time.Minute  // between two requests
	writePause  = time.Minute      // a client that takes nothing for so long is dropped
	maxConns    = 1 << 20
)

// Server gives the fasthttp server of the interface. Bodies are streamed, so that a request can be refused before its body is read. Of a
// body, fasthttp itself reads no more than MaxRequestBodySize before it calls the handler; the real limit is upload's.
func (a *API) Server() *fasthttp.Server {
	return &fasthttp.Server{
		Handler: a.Handle, ErrorHandler: a.refuse, Logger: silent{}, Name: "", NoDefaultServerHeader: true,
		NoDefaultContentType: true, SecureErrorLogMessage: true,
		ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer, Concurrency: maxConns,
		ReadTimeout: headerTime, IdleTimeout: idleTime, WriteTimeout: writePause,
		StreamRequestBody: true, MaxRequestBodySize: 1, DisablePreParseMultipartForm: true,
	}
}

// silent drops the messages of fasthttp, which may quote requests.
type silent struct{}

func (silent) Printf(string, ...any) {}

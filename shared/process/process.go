package process

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // daily limits of providers end at midnight of their zones, and small images have no zone files

	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/telemetry"
)

// Service describes a process that runs one service of the pipeline.
type Service struct {
	Name       string // such as "analyzer"
	HealthAddr string // where health checks and metrics are served unless HEALTH_ADDR says otherwise
	Build      Build
}

// Main runs the service until the process is told to stop, and gives the exit code. With the arguments "healthcheck PORT [PATH]" it asks the one that
// runs instead (Healthcheck).
func Main(s Service) int {
	ctx, stop := lifecycle.Signals()
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "healthcheck" {
		if err := Healthcheck(ctx, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	env, err := config.Process()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return s.Run(ctx, env, os.Stdout, os.Stderr)
}

// Run loads the configuration from env and runs the service until ctx ends. Logs go to out; what keeps it from starting goes to errOut. The
// result is an exit code.
func (s Service) Run(ctx context.Context, env config.Environment, out, errOut io.Writer) int {
	settings, err := LoadFrom(env, Overrides{})
	if err != nil {
		fmt.Fprintln(errOut, err)
		return 1
	}
	settings.Sockets = Sockets()
	health := s.HealthAddr
	if addr, ok := env.Lookup("HEALTH_ADDR"); ok && addr != "" {
		health = addr
	}
	err = Observed(ctx, settings, s.Name, out, func(log *slog.Logger) error {
		if settings.NATS.URL == "" {
			return fmt.Errorf("%s needs a NATS server: set nats.url (or NATS_URL without a configuration file)", s.Name)
		}
		return s.serve(ctx, settings, health, log)
	})
	if err != nil {
		fmt.Fprintf(errOut, "%s: %v\n", s.Name, err)
		return 1
	}
	return 0
}

func (s Service) serve(ctx context.Context, settings Settings, healthAddr string, log *slog.Logger) error {
	settings.Report(ctx, log)
	fail := make(chan error, 1)
	metrics := telemetry.NewRegistry(Version())
	connect := settings.Connection(s.Name)
	connect.Logger, connect.OnLost = log, Fail(fail)
	unit := NewUnit(connect, Parts{
		ID: NewID(s.Name), Config: settings.Config, Again: settings.Again, Version: Version(), Log: log, Metrics: metrics, Sockets: settings.Sockets,
	}, s.Build)
	notify := Notifier{Log: log}
	defer OnHangup(ctx, []*Unit{unit}, notify)()
	health := telemetry.NewHealthServer(healthAddr, metrics, unit, log)
	return lifecycle.Run(ctx, log, settings.Server.StopLimit(), fail,
		lifecycle.Named{Name: "health", Service: health}, lifecycle.Named{Name: s.Name, Service: unit}, lifecycle.Named{Name: "systemd", Service: notify})
}

// NewID makes an id for one run of a service: its name and a random part.
func NewID(name string) string { return name + "-" + strings.ToLower(rand.Text()[:12]) }

// Fail gives a function that reports the first error to fail and never blocks.
func Fail(fail chan<- error) func(error) {
	return func(err error) {
		select {
		case fail <- err:
		default:
		}
	}
}

// traceFlush bounds the sending of the last traces.
const traceFlush = 3 * time.Second

// Observed runs fn with a logger, with tracing and with limits of memory, and releases them.
func Observed(ctx context.Context, settings Settings, instance string, out io.Writer, fn func(*slog.Logger) error) error {
	log, closeLog, err := telemetry.NewLogger(settings.LogConfig(), out)
	if err != nil {
		return err
	}
	defer closeLog() //nolint:errcheck // the last line is written; nobody is left to read more
	defer keepMemory(ctx, log)()
	stopTracing, err := telemetry.StartTracing(ctx, telemetry.TraceConfig{
		Endpoint: settings.Telemetry.OTLPEndpoint, Service: settings.Telemetry.ServiceName, Instance: instance, Version: Version(),
		Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceFlush)
		defer cancel()
		if err := stopTracing(ctx); err != nil {
			log.Warn("sending the last traces", slog.Any("error", err))
		}
	}()
	return fn(log)
}

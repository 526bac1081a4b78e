// Package sessionwriter is the service that owns the database. It stores the facts of the pipeline, answers the queries of the others, and is a stage on
// the way of requests with a session: it loads the history, saves the question and puts the prompt together.
//
// Facts wait in their stream until they are stored: a batch is acknowledged after its transaction, and storing is idempotent, so neither a
// crash nor a redelivery loses or doubles one. A request without a session never waits for this service.
package sessionwriter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/session-writer/internal/compress"
	"hydrallm/services/session-writer/internal/memory"
	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/query"
	"hydrallm/shared/settings"
	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// Config is what an operator may choose.
type Config struct {
	ID       string        // unique among the session-writers that run at the same time; one NATS subject token
	Version  string        // of the program
	Database string        // "sqlite:" and a path, or a postgres:// URL
	MaxBatch int           // most facts stored together; 0 = 64
	MaxWait  time.Duration // longest wait to fill a batch; 0 = 100ms

	RetentionDays int            // sessions that were not used for so long are removed; 0 = never
	MaxSessions   int            // of more than this, those that were not used for longest are removed; 0 = no limit
	Settings      *settings.View // has both as they are now; nil = they do not change

	CompactThreshold int    // estimated tokens of a session from which on its older messages are summarised; 0 = never
	RecentWindow     int    // newest messages that are not; 0 = 1
	Compressor       string // "extractive", "http", "llm" or "off"; "" = "extractive"
	CompressorURL    string // for "http"
	CompressorModel  string // for "llm", as clients name it
	Configured       bool   // CompressorModel is a model of the configuration
}

const (
	defaultBatch = 64
	defaultWait  = 100 * time.Millisecond
)

// Validate reports every fault of the configuration. It does not show the address of the database, which may hold a password.
func (c Config) Validate() error {
	var errs []error
	if c.ID == "" {
		errs = append(errs, errors.New("no id"))
	}
	if c.Database == "" {
		errs = append(errs, errors.New("no database is configured"))
	}
	if c.MaxBatch < 0 {
		errs = append(errs, fmt.Errorf("batch size %d is negative", c.MaxBatch))
	}
	if c.MaxWait < 0 {
		errs = append(errs, fmt.Errorf("batch wait %s is negative", c.MaxWait))
	}
	return errors.Join(errs...)
}

// Service is the session-writer. It is a lifecycle.Service: Start brings the schema of the database up to date and begins to store facts, to answer queries and
// to take requests. Without a database it begins all the same, and gets ready by itself when there is one. Stop stores the batch under way; when its time is over first, the transaction is rolled back and the facts wait in their
// stream for the next start.
type Service struct {
	*lifecycle.Switch[run]

	cfg     Config
	bus     *bus.Bus
	log     *slog.Logger
	metrics *metrics
}

// New makes a service that has not started. It registers its metrics with reg and keeps b, which the caller owns and closes after Stop.
func New(cfg Config, b *bus.Bus, log *slog.Logger, reg prometheus.Registerer) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("checking the configuration of the session-writer: %w", err)
	}
	if cfg.MaxBatch == 0 {
		cfg.MaxBatch = defaultBatch
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = defaultWait
	}
	m, err := newMetrics(reg)
	if err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg, bus: b, log: log, metrics: m}
	s.Switch = lifecycle.NewSwitch(s.begin, s.end)
	return s, nil
}

// Build makes the service from what all services are built from.
func Build(p process.Parts) (lifecycle.Service, error) {
	c := p.Config.Sessions
	return New(Config{
		ID: p.ID, Version: p.Version, Database: c.Database.Reveal(), Settings: p.Settings,
		CompactThreshold: c.CompactThreshold, RecentWindow: c.RecentWindow, Compressor: c.Compressor, CompressorURL: c.CompressorURL,
		CompressorModel: c.CompressorModel, Configured: slices.ContainsFunc(p.Config.Models, func(m config.Model) bool { return m.Name == c.CompressorModel }),
	}, p.Bus, p.Log, p.Metrics)
}

func (s *Service) begin(ctx context.Context, r *run) error {
	db, err := store.New(s.cfg.Database, projectOf(ctx, ""))
	if err != nil {
		return err
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.store, r.cancel = db, cancel
	r.database = &database{store: db, log: s.log, up: s.metrics.database}
	ready, err := r.database.begin(ctx)
	if err != nil {
		return err
	}
	all := &sessions{store: db, database: r.database, facts: s.bus, log: s.log}
	kept := &stored{store: db, facts: s.bus, life: s.cfg.responseLife, most: maxInherited}
	summaries, texts, err := s.compressors(r)
	if err != nil {
		return err
	}
	optimizer := memory.New(memory.Config{Threshold: int64(s.cfg.CompactThreshold), Window: s.cfg.RecentWindow}, db, summaries, s.log, s.metrics.compacted)
	r.wg.Go(func() { optimizer.Run(work) })
	w := &writer{store: db, database: r.database, sessions: all, stored: kept, optimizer: optimizer, dead: s.bus.DeadFact, log: s.log, metrics: s.metrics}
	facts := bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: s.cfg.MaxBatch, MaxWait: s.cfg.MaxWait}
	// The context of the consumer ends when Stop begins; a batch that was fetched is still stored, as Stop promises.
	r.facts, err = s.bus.ConsumeFacts(ctx, facts, func(_ context.Context, batch []bus.Fact) error { return w.write(work, batch) })
	if err != nil {
		return err
	}
	changed := &mirror{store: db, log: s.log}
	if changed.bucket, err = s.bus.Bucket(ctx, subject.SettingsBucket); err != nil {
		return err
	}
	saved := &backups{id: s.cfg.ID, version: s.cfg.Version, store: db, bus: s.bus, work: work, running: &r.wg}
	answers := bus.QueryConfig{Service: query.SessionWriter, Instance: s.cfg.ID, Version: s.cfg.Version, Handlers: handlers(s.cfg, all, kept, changed, r.database, saved)}
	if r.queries, err = s.bus.Serve(ctx, answers); err != nil {
		return err
	}
	turns := &stage{sessions: all, stored: kept, database: r.database, compressor: texts, log: s.log, metrics: s.metrics}
	if r.work, err = s.bus.ConsumeWork(ctx, bus.WorkConfig{Consumer: topology.Session, MaxInFlight: maxInFlight}, turns.handle); err != nil {
		return err
	}
	r.wg.Go(func() {
		r.database.keep(work, ready, func() {
			r.wg.Go(func() { keepPruned(work, db, s.cfg.retention, s.log, s.metrics) })
			r.wg.Go(func() { changed.keep(work) })
			r.wg.Go(func() { keepSettled(work, db, s.log, s.metrics) })
			optimizer.ConsiderAll(work)
		})
	})
	return nil
}

// compressors gives what makes summaries, nil for nothing, and what shortens the history of a prompt.
func (s *Service) compressors(r *run) (summaries, texts memory.Compressor, err error) {
	switch s.cfg.Compressor {
	case "off":
		return nil, compress.HeadTail{}, nil
	case "http":
		r.sidecar = compress.NewSidecar(s.cfg.CompressorURL)
		c := compress.NewFallback(r.sidecar, s.compressorFailed)
		return c, c, nil
	case "llm":
		r.model, err = newModelCompressor(s.bus, s.cfg.ID, s.cfg.CompressorModel, s.cfg.Configured)
		if err != nil {
			return nil, nil, err
		}
		return compress.NewFallback(r.model, s.compressorFailed), compress.Extractive{}, nil // nobody waits for a model for each message of a prompt
	}
	return compress.Extractive{}, compress.Extractive{}, nil
}

func (s *Service) compressorFailed(ctx context.Context, err error) {
	s.log.WarnContext(ctx, "the compressor failed, the built-in one does its work", slog.Any("error", err))
}

// retention says how much is kept.
func (c Config) retention() store.Retention {
	r := store.DefaultRetention
	days, sessions := c.kept()
	r.Sessions = store.SessionLimit{Age: time.Duration(days) * day, Count: sessions}
	return r
}

// kept is how long sessions are kept that nobody uses, in days, and how many.
func (c Config) kept() (days, sessions int) {
	if c.Settings == nil {
		return c.RetentionDays, c.MaxSessions
	}
	s := c.Settings.Config().Sessions
	return s.RetentionDays, s.MaxSessions
}

// responseLife is how long a stored response is kept.
func (c Config) responseLife() time.Duration {
	days, _ := c.kept()
	if days == 0 {
		return defaultResponseLife
	}
	return time.Duration(days) * day
}

// defaultResponseLife is that of OpenAI.
const defaultResponseLife = 30 * day

const day = 24 * time.Hour

// run is what exists between Start and Stop.
type run struct {
	store    *store.Store
	database *database
	facts    *bus.FactConsumer
	queries  *bus.Service
	work     *bus.Consumer
	model    *modelCompressor   // nil = none
	sidecar  *compress.Sidecar  // nil = none
	cancel   context.CancelFunc // of everything that works for this run
	wg       sync.WaitGroup
}

func (s *Service) end(ctx context.Context, r *run) error {
	if r.store == nil {
		return nil
	}
	release := context.AfterFunc(ctx, r.cancel)
	defer release()
	err := errors.Join(r.work.Stop(ctx), r.facts.Stop(ctx), r.queries.Stop(ctx))
	r.cancel()
	r.wg.Wait()
	if r.sidecar != nil {
		r.sidecar.Close()
	}
	if r.model != nil {
		err = errors.Join(err, r.model.Close())
	}
	return errors.Join(err, r.store.Close())
}

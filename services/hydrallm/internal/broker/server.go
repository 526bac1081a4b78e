package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
)

// Config is what an operator may choose.
type Config struct {
	StoreDir string // where streams on disk live; created when missing, used by one process at a time
	Listen   string // host:port on which other processes may connect too; "" = none
}

// Limits of the server. The streams reserve their sizes when they are created, so the limits must hold the sum of all of them whatever the
// machine has; nothing is allocated for it.
const (
	maxMemory  = 4 << 30
	maxStore   = 16 << 30
	maxPayload = 8 << 20
	maxPending = 512 << 20 // per connection; a connection carries every answer of its service

	writeDeadline = time.Minute // a busy machine may let a service wait, which must not cost its connection

	readyWait = 30 * time.Second
)

// Errors of Start.
var (
	ErrInUse    = errors.New("the directory is used by another process")
	errNotReady = errors.New("the server does not get ready")
)

// Server is an embedded NATS server. It gives connections through InProcessConn once it is started.
type Server struct {
	cfg  Config
	log  *slog.Logger
	lock *flock.Flock
	nats *server.Server // nil while stopped
}

// New makes a server that has not started.
func New(cfg Config, log *slog.Logger) *Server { return &Server{cfg: cfg, log: log} }

// Start brings the server up and returns when it takes connections. The error wraps ErrInUse when another process has the store.
func (s *Server) Start(ctx context.Context) error {
	opts, err := s.options()
	if err != nil {
		return err
	}
	if err := s.claimStore(); err != nil {
		return err
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		s.releaseStore()
		return fmt.Errorf("creating the NATS server: %w", err)
	}
	fatal := make(chan error, 1)
	ns.SetLoggerV2(&logger{log: s.log, fatal: fatal}, false, false, false)
	ns.Start()
	if err := awaitReady(ctx, ns, fatal); err != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
		s.releaseStore()
		return fmt.Errorf("starting the NATS server on %s: %w", s.cfg.StoreDir, err)
	}
	s.nats = ns
	return nil
}

func (s *Server) options() (*server.Options, error) {
	opts := &server.Options{
		ServerName: "hydrallm", DontListen: true, NoSigs: true, MaxPayload: maxPayload, MaxPending: maxPending, WriteDeadline: writeDeadline,
		JetStream: true, StoreDir: s.cfg.StoreDir, JetStreamMaxMemory: maxMemory, JetStreamMaxStore: maxStore,
	}
	if s.cfg.Listen == "" {
		return opts, nil
	}
	host, port, err := net.SplitHostPort(s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("reading the listen address of the NATS server: %w", err)
	}
	opts.DontListen, opts.Host = false, host
	if opts.Port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("reading the listen port of the NATS server: %w", err)
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	return opts, nil
}

// claimStore makes sure that no other process writes to the store: two servers on one directory destroy it.
func (s *Server) claimStore() error {
	if err := os.MkdirAll(s.cfg.StoreDir, 0o750); err != nil {
		return fmt.Errorf("creating the NATS store: %w", err)
	}
	lock := flock.New(filepath.Join(s.cfg.StoreDir, "lock"))
	got, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("locking the NATS store %s: %w", s.cfg.StoreDir, err)
	}
	if !got {
		return fmt.Errorf("locking the NATS store %s: %w", s.cfg.StoreDir, ErrInUse)
	}
	s.lock = lock
	return nil
}

// Claim keeps every server from a directory until release is called. The error wraps ErrInUse when one uses it.
func Claim(dir string) (release func(), err error) {
	s := New(Config{StoreDir: dir}, slog.New(slog.DiscardHandler))
	if err := s.claimStore(); err != nil {
		return nil, err
	}
	return s.releaseStore, nil
}

// Used says whether a server has put something into a directory.
func Used(dir string) (bool, error) {
	list, err := os.ReadDir(filepath.Join(dir, server.JetStreamStoreDir))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return len(list) > 0, err
}

func (s *Server) releaseStore() {
	if err := s.lock.Unlock(); err != nil {
		s.log.Warn("unlocking the NATS store", slog.Any("error", err))
	}
}

// awaitReady waits for connections to work, or for the error that keeps the server from it.
func awaitReady(ctx context.Context, ns *server.Server, fatal <-chan error) error {
	deadline := time.NewTimer(readyWait)
	defer deadline.Stop()
	for {
		select {
		case err := <-fatal:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return errNotReady
		default:
		}
		if ns.ReadyForConnections(50*time.Millisecond) && ns.JetStreamEnabled() {
			return nil
		}
	}
}

// InProcessConn opens a connection that never leaves the process.
func (s *Server) InProcessConn() (net.Conn, error) {
	if s.nats == nil {
		return nil, errNotReady
	}
	conn, err := s.nats.InProcessConn()
	if err != nil {
		return nil, fmt.Errorf("connecting inside the process: %w", err)
	}
	return conn, nil
}

// Addr is the address on which other processes may connect, or nil.
func (s *Server) Addr() net.Addr {
	if s.nats == nil {
		return nil
	}
	return s.nats.Addr()
}

// Stop writes out what is buffered and ends the server; it waits for the end whatever ctx says, because a store that is left half written
// costs more than the wait.
func (s *Server) Stop(context.Context) error {
	if s.nats == nil {
		return nil
	}
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	s.nats = nil
	s.releaseStore()
	return nil
}

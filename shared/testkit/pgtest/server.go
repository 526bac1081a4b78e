package pgtest

import (
	"database/sql"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/lib/pq"

	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/machine"
)

// Server is a PostgreSQL of one test, which may stop it and start it again: it keeps its port and its data, also what was committed right before it was killed.
type Server struct {
	tb       testing.TB
	bin, dir string
	port     int
	password string
	stop     func(keep bool) error // nil while it does not run
}

// NewServer makes a server and starts it. It needs the binaries of PostgreSQL on this machine. It ends with the test.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	bin, err := localBinaries()
	if err != nil {
		machine.Missing(tb, "PostgreSQL", err)
	}
	dir, password, err := newData(bin)
	if err != nil {
		tb.Fatalf("making a PostgreSQL server: %v", err)
	}
	s := &Server{tb: tb, bin: bin, dir: dir, port: freeport.Port(tb), password: password}
	tb.Cleanup(func() {
		if s.stop != nil {
			err = s.stop(false)
		}
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
			tb.Errorf("removing a PostgreSQL server: %v", err)
		}
	})
	s.Start()
	return s
}

// Address is that of its database, as a postgres:// URL with user and password.
func (s *Server) Address() string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, s.password), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path: "/postgres", RawQuery: "sslmode=disable",
	}).String()
}

// Start runs the server and returns when it takes connections.
func (s *Server) Start() {
	s.tb.Helper()
	stop, err := serve(s.bin, s.dir, s.port, append(slices.Clone(settings), "synchronous_commit=on")) // what is committed outlives the process
	if err != nil {
		s.tb.Fatalf("starting PostgreSQL: %v", err)
	}
	s.stop = stop
}

// Stop ends the server without any notice to its clients, and returns when the process is gone.
func (s *Server) Stop() {
	s.tb.Helper()
	if err := s.stop(true); err != nil {
		s.tb.Fatalf("stopping PostgreSQL: %v", err)
	}
	s.stop = nil
	if _, err := os.Stat(filepath.Join(s.dir, "data", "PG_VERSION")); err != nil {
		s.tb.Fatalf("the data of PostgreSQL is gone: %v", err)
	}
}

// Count gives the number of rows of a table.
func (s *Server) Count(table string) (rows int) {
	s.tb.Helper()
	db, err := sql.Open("postgres", s.Address())
	if err == nil {
		err = db.QueryRowContext(s.tb.Context(), "SELECT count(*) FROM "+pq.QuoteIdentifier(table)).Scan(&rows)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		s.tb.Fatalf("counting rows of %s: %v", table, err)
	}
	return rows
}

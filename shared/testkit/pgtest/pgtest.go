// Package pgtest gives tests a real PostgreSQL: a fresh, empty database for each test, on a server that the test process shares.
//
// The server is, in this order: the one named by HYDRALLM_TEST_POSTGRES (a postgres:// address of a role that may create databases), one
// started from the PostgreSQL binaries of this machine, or a container. When there is none the test is skipped, or fails if
// HYDRALLM_REQUIRE_SERVICES=1 is set. A package that uses it ends its TestMain with Stop or runs its tests through Main.
package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/lib/pq"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/machine"
)

// AddressEnv is the environment variable that names a server.
const AddressEnv = "HYDRALLM_TEST_POSTGRES"

const setupWait = await.Limit

// server is where databases can be made. stop may be nil.
type server struct {
	admin *url.URL // of a database that always exists
	stop  func() error
}

// shared is the server of this process, started by the first New.
var shared struct {
	sync.Mutex
	tried bool
	srv   *server
	err   error
}

// Main runs the tests of a package, looks for goroutines that nobody stopped, and stops the server.
func Main(m *testing.M) { leaktest.Main(m, Stop) }

// New makes an empty database and gives its address as a postgres:// URL with user and password. The database goes with the test.
func New(tb testing.TB) string {
	tb.Helper()
	srv, err := start()
	if err != nil {
		machine.Missing(tb, "PostgreSQL", err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if err := srv.exec("CREATE DATABASE " + pq.QuoteIdentifier(name) + " TEMPLATE template0"); err != nil {
		tb.Fatalf("creating a test database: %v", err)
	}
	tb.Cleanup(func() {
		if err := srv.exec("DROP DATABASE IF EXISTS " + pq.QuoteIdentifier(name) + " WITH (FORCE)"); err != nil {
			tb.Errorf("dropping a test database: %v", err)
		}
	})
	dsn := *srv.admin
	dsn.Path = "/" + name
	return dsn.String()
}

// Stop ends the server that New started and removes its files. It does nothing when there is none; New starts another afterwards.
func Stop() error {
	shared.Lock()
	defer shared.Unlock()
	srv := shared.srv
	shared.tried, shared.srv, shared.err = false, nil, nil
	if srv == nil || srv.stop == nil {
		return nil
	}
	if err := srv.stop(); err != nil {
		return fmt.Errorf("stopping the test PostgreSQL: %w", err)
	}
	return nil
}

func start() (*server, error) {
	shared.Lock()
	defer shared.Unlock()
	if !shared.tried {
		shared.srv, shared.err = find()
		shared.tried = true
	}
	return shared.srv, shared.err
}

func find() (*server, error) {
	if address := os.Getenv(AddressEnv); address != "" {
		return named(address)
	}
	bin, localErr := localBinaries()
	if localErr == nil {
		return startLocal(bin)
	}
	srv, dockerErr := startContainer()
	if dockerErr != nil {
		return nil, errors.Join(fmt.Errorf("%s is not set", AddressEnv), localErr, dockerErr)
	}
	return srv, nil
}

func named(address string) (*server, error) {
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		return nil, fmt.Errorf("%s is not a postgres:// address", AddressEnv) // without the value: it may hold a password
	}
	srv := &server{admin: u}
	if err := srv.ready(); err != nil {
		return nil, fmt.Errorf("reaching the server of %s: %w", AddressEnv, err)
	}
	return srv, nil
}

// exec runs one statement on a connection of its own, as CREATE DATABASE wants it.
func (s *server) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), setupWait) // the test's own context ends before its cleanup
	defer cancel()
	db, err := sql.Open("postgres", s.admin.String())
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

func (s *server) ready() error { return s.exec("SELECT 1") }

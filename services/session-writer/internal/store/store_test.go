package store

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// Writers that start together agree on one schema, and starting again changes nothing.
func TestConcurrentStartsMigrateOnce(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			address := b.address(t)
			var wg sync.WaitGroup
			for i := range 6 {
				start := func() {
					s, err := Open(t.Context(), address)
					require.NoError(t, err)
					_, err = s.RecordUsage(t.Context(), usages(i+1))
					require.NoError(t, err)
					require.NoError(t, s.Close())
				}
				if b.name == "postgres" {
					wg.Go(start)
				} else { // there is one at a time
					start()
				}
			}
			wg.Wait()
			s := openStore(t, address)
			require.Equal(t, int64(6), statsOf(t, s).TotalRequests)
			var applied int
			require.NoError(t, s.read.GetContext(t.Context(), &applied, `SELECT COUNT(*) FROM goose_db_version WHERE version_id = 1`))
			require.Equal(t, 1, applied)
		})
	}
}

// foreign keys are enforced on every connection that writes.
func TestSchema(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		for _, table := range []string{
			"sessions", "messages", "parts", "system_settings", "system_logs", "usage_metrics", "attempts", "provider_health", "daily_usage",
			"scraping_metrics",
		} {
			require.Zero(t, countRows(t, s, table), table)
		}
		insertMessage := s.write.Rebind(`INSERT INTO messages (id, session_id, role, created_at) VALUES (?, ?, ?, ?)`)
		_, err := s.write.ExecContext(t.Context(), insertMessage, "msg_1", "ses_1", "user", Time{at})
		require.ErrorIs(t, rejection(err), ErrRejected, "no such session")
		exec(t, s, `INSERT INTO sessions (id, project_id, created_at, updated_at) VALUES (?, ?, ?, ?)`, "ses_1", "default", Time{at}, Time{at})
		_, err = s.write.ExecContext(t.Context(), insertMessage, "msg_1", "ses_1", "robot", Time{at})
		require.ErrorIs(t, rejection(err), ErrRejected, "no such role")
		exec(t, s, insertMessage, "msg_1", "ses_1", "user", Time{at})
		exec(t, s, `INSERT INTO parts (id, message_id, type, data, created_at) VALUES (?, ?, ?, ?, ?)`, "prt_1", "msg_1", "text", `{}`, Time{at})
		exec(t, s, `DELETE FROM sessions`)
		require.Zero(t, countRows(t, s, "messages"))
		require.Zero(t, countRows(t, s, "parts"))
	})
}

func TestDataOutlivesTheStore(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			address := b.address(t)
			s, err := Open(t.Context(), address)
			require.NoError(t, err)
			_, err = s.RecordUsage(t.Context(), []contract.RequestRecord{usage("r1")})
			require.NoError(t, err)
			require.NoError(t, s.Close())
			require.Equal(t, int64(1), statsOf(t, openStore(t, address)).TotalRequests)
		})
	}
}

func TestOpenRefusesOtherAddresses(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{
		"empty": "", "other system": "mysql://u:secret-word@h/db", "no path": "sqlite:", "memory": "sqlite::memory:",
		"broken URL": "postgres://u:secret-word@h:port/db", "broken escape": "postgres://u:secret-word%zz@h/db",
		"unknown setting": "postgres://u:secret-word@127.0.0.1:1/db?sslmode=secret-word",
		"nobody there":    "postgres://u:secret-word@127.0.0.1:1/db?sslmode=disable&connect_timeout=2",
		"directory":       "sqlite:" + t.TempDir(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), address)
			require.Nil(t, s)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "secret-word")
		})
	}
}

// A refused password does not show up in the error of the server or the driver.
func TestWrongPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	address := backends[1].address(t)
	scheme, rest, _ := strings.Cut(address, "://")
	userinfo, host, _ := strings.Cut(rest, "@")
	user, _, _ := strings.Cut(userinfo, ":")
	_, err := Open(t.Context(), scheme+"://"+user+":secret%2Fword@"+host)
	require.ErrorContains(t, err, "password authentication failed")
	require.NotContains(t, err.Error(), "secret")
}

func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"@127.0.0.1:1/db", "@h:port", "%zz@h/db", "@[::1/db", "@h/db?sslmode=x&x=\x00", "\n@h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		if strings.Contains(rest, "hunter2secret") {
			return
		}
		ctx, cancel := canceled(t)
		defer cancel() // nothing may be dialled
		_, err := Open(ctx, "postgres://user:hunter2secret"+rest)
		if err == nil || strings.Contains(err.Error(), "hunter2secret") {
			t.Fatalf("error shows the password: %v", err)
		}
	})
}

// a database that a newer version has changed is refused, and not touched.
func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			address := b.address(t)
			s := openStore(t, address)
			_, err := s.RecordUsage(t.Context(), usages(1))
			require.NoError(t, err)
			_, err = s.write.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, true)`)
			require.NoError(t, err)
			require.NoError(t, s.Close())
			_, err = Open(t.Context(), address)
			require.ErrorIs(t, err, ErrNewer)
			require.ErrorContains(t, err, "9000")
			require.NotContains(t, err.Error(), "password")
		})
	}
}

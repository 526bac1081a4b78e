package store

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// content gives all that a store exports, as lines in an order that does not depend on the database.
func content(t *testing.T, s *Store) (lines []string, schema int64) {
	t.Helper()
	schema, err := s.Export(t.Context(), func(table string, chunk []byte) error {
		rows := strings.Split(strings.TrimSpace(string(chunk)), "\n")
		var names []string
		require.NoError(t, json.Unmarshal([]byte(rows[0]), &names))
		for _, line := range rows[1:] {
			var values []json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(line), &values))
			row := map[string]json.RawMessage{}
			for i, name := range names {
				row[name] = values[i]
			}
			text, err := json.Marshal(row)
			require.NoError(t, err)
			lines = append(lines, table+" "+string(text))
		}
		return nil
	})
	require.NoError(t, err)
	sort.Strings(lines)
	return lines, schema
}

// restore puts what a store exports into another database.
func restore(t *testing.T, from *Store, address string, schema int64, replace bool) error {
	t.Helper()
	r, err := Restore(t.Context(), address, schema, replace)
	if err != nil {
		return err
	}
	_, err = from.Export(t.Context(), func(table string, chunk []byte) error { return r.Take(t.Context(), table, chunk) })
	require.NoError(t, err)
	return r.Commit(t.Context())
}

// what was exported from one database is in the other one then, of the same kind or not, and it counts on.
func TestExportAndRestore(t *testing.T) {
	t.Parallel()
	for _, from := range backends {
		for _, to := range backends {
			t.Run(from.name+" to "+to.name, func(t *testing.T) {
				t.Parallel()
				s := openStore(t, from.address(t))
				_, err := s.RecordUsage(t.Context(), usages(40))
				require.NoError(t, err)
				require.NoError(t, s.PutSettings(t.Context(), map[string]string{"locale": `"ko"`}, nil))
				id, err := s.NewSession(t.Context())
				require.NoError(t, err)
				exec(t, s, "UPDATE sessions SET applied = 7, title = ? WHERE id = ?", "제목 'x' \"y\" \\ \n \u0001", id)
				want, schema := content(t, s)
				require.Equal(t, KnownSchema(), schema)
				require.Greater(t, len(want), 80)
				require.Contains(t, strings.Join(want, "\n"), `"applied":7`, "the place in the stream of facts")

				address := to.address(t)
				require.NoError(t, restore(t, s, address, schema, false))
				other := openStore(t, address)
				got, _ := content(t, other)
				exec(t, s, "UPDATE sessions SET applied = 0")
				want, _ = content(t, s)
				require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
				more := usages(41)[40:]
				_, err = other.RecordUsage(t.Context(), more)
				require.NoError(t, err, "new rows get new numbers")
				require.Equal(t, 41, countRows(t, other, "usage_metrics"))
				require.NoError(t, other.Close())

				require.ErrorIs(t, restore(t, s, address, schema, false), ErrNotEmpty)
				require.ErrorIs(t, restore(t, s, address, schema+1, true), ErrNewer)
				require.NoError(t, restore(t, s, address, schema, true))
				got, _ = content(t, openStore(t, address))
				require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
			})
		}
	}
}

// a backup of any older schema becomes a database of this one; its export has the rows as they were before.
func TestOlderSchemasAreRestored(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		for version := int64(1); version < KnownSchema(); version++ {
			t.Run(fmt.Sprint(b.name, " ", version), func(t *testing.T) {
				t.Parallel()
				address := b.address(t)
				r, err := Restore(t.Context(), address, version, false)
				require.NoError(t, err)
				require.NoError(t, r.Take(t.Context(), "daily_usage", []byte(`["day","provider","model","prompt_tokens","completion_tokens","total_tokens","request_count","error_count"`+
					principal(version, `,"principal"`)+"]\n"+`["2026-05-01","p","m",10,3,13,1,0`+principal(version, `,""`)+"]\n")))
				require.NoError(t, r.Commit(t.Context()))
				s := openStore(t, address)
				require.Equal(t, 1, countRows(t, s, "daily_usage"))
				_, err = s.RecordUsage(t.Context(), usages(2))
				require.NoError(t, err)
			})
		}
	}
}

func principal(version int64, text string) string {
	if version < 3 {
		return ""
	}
	return text
}

// Every table is in a backup.
func TestEveryTableIsBackedUp(t *testing.T) {
	t.Parallel()
	s := openStore(t, sqliteAddress(t))
	var tables []string
	require.NoError(t, s.read.SelectContext(t.Context(), &tables, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"))
	require.ElementsMatch(t, tables, append([]string{versions}, backedUp...))
	r, err := Restore(t.Context(), sqliteAddress(t), KnownSchema(), false)
	require.NoError(t, err)
	for _, bad := range [][2]string{
		{"users", "[\"a\"]\n"},
		{"settings", "[\"a; DROP TABLE x\"]\n"},
		{"settings", "[]\n"},
		{"settings", "{}\n"},
		{"settings", "[\"name\"]\n[1,2]\n"},
		{"settings", "[\"name\"]\n[1.5]\n"},
		{"settings", "[\"name\""},
		{"goose_db_version", "[\"id\"]\n"},
	} {
		require.Error(t, r.Take(context.Background(), bad[0], []byte(bad[1])), bad)
	}
	require.NoError(t, r.Discard())
}

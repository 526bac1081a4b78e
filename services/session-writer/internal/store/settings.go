package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// Settings gives the stored values of settings, JSON by path.
func (s *Store) Settings(ctx context.Context) (map[string]string, error) {
	var rows []struct{ Name, Value string }
	if err := s.read.SelectContext(ctx, &rows, `SELECT name, value FROM settings`); err != nil {
		return nil, fmt.Errorf("reading settings: %w", err)
	}
	all := make(map[string]string, len(rows))
	for _, r := range rows {
		all[r.Name] = r.Value
	}
	return all, nil
}

// PutSettings stores values and removes others, in one transaction.
func (s *Store) PutSettings(ctx context.Context, set map[string]string, remove []string) error {
	const put = `INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`
	err := s.inTx(ctx, func(tx *sqlx.Tx) error {
		for _, name := range slices.Sorted(maps.Keys(set)) { // in one order, so that two writers do not wait for each other
			if _, err := tx.ExecContext(ctx, tx.Rebind(put), name, set[name], Time{time.Now()}); err != nil {
				return fmt.Errorf("storing a setting: %w", err)
			}
		}
		for _, name := range remove {
			if _, err := tx.ExecContext(ctx, tx.Rebind(`DELETE FROM settings WHERE name = ?`), name); err != nil {
				return fmt.Errorf("removing a setting: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("storing settings: %w", err)
	}
	return nil
}

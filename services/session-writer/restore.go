package sessionwriter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"hydrallm/services/session-writer/internal/archive"
	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/bus"
)

// Backup says what is in an archive that was made by query.GetBackup.
type Backup struct {
	Version string // of the program that made it
	Schema  int64  // of its database
	Time    time.Time
}

// CheckBackup reads an archive to its end. The error says which part is damaged, or that its schema is newer than this program's.
func CheckBackup(r io.Reader) (Backup, error) {
	m, err := archive.Read(r, func(string, []byte) error { return nil })
	if err != nil {
		return Backup{}, err
	}
	if m.Schema > store.KnownSchema() {
		return Backup{}, fmt.Errorf("%w: the backup is by version %s, with schema %d, and this version knows schemas up to %d", store.ErrNewer, m.Version, m.Schema, store.KnownSchema())
	}
	return Backup{Version: m.Version, Schema: m.Schema, Time: m.Time}, nil
}

// ErrNotEmpty says that something would be overwritten.
var ErrNotEmpty = store.ErrNotEmpty

// RestoreDatabase puts the tables of an archive, which has been checked, into a database that nobody uses. One that has tables is an ErrNotEmpty, unless
// they may be replaced. The database has all of them, or none.
func RestoreDatabase(ctx context.Context, r io.Reader, b Backup, address string, replace bool) error {
	target, err := store.Restore(ctx, address, b.Schema, replace)
	if err != nil {
		return err
	}
	if _, err := archive.Read(r, func(part string, data []byte) error {
		kind, table := archive.Section(part)
		if kind != "database" {
			return nil
		}
		return target.Take(ctx, table, data)
	}); err != nil {
		return errors.Join(err, target.Discard())
	}
	return target.Commit(ctx)
}

// BucketsEmpty is an ErrNotEmpty when RestoreBuckets would replace something.
func BucketsEmpty(ctx context.Context, b *bus.Bus) error {
	for _, name := range keptBuckets() {
		there, err := readBucket(ctx, b, name)
		if err != nil {
			return err
		}
		if len(there) > 0 {
			return fmt.Errorf("bucket %s: %w", name, ErrNotEmpty)
		}
	}
	return nil
}

// SchemaOf is the version of the schema of a database, 0 for one without tables, and that of this program.
func SchemaOf(ctx context.Context, address string) (is, known int64, err error) {
	is, err = store.SchemaOf(ctx, address)
	return is, store.KnownSchema(), err
}

// RestoreBuckets puts the values of an archive, which has been checked, into the buckets of a server that nobody uses. Values that are there and not in the
// archive are removed.
func RestoreBuckets(ctx context.Context, r io.Reader, b *bus.Bus) error {
	_, err := archive.Read(r, func(part string, data []byte) error {
		kind, name := archive.Section(part)
		if kind != "bucket" {
			return nil
		}
		var records []record
		if err := json.Unmarshal(data, &records); err != nil {
			return fmt.Errorf("part %s: %w", part, err)
		}
		if err := fillBucket(ctx, b, name, records); err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
		return nil
	})
	return err
}

func fillBucket(ctx context.Context, b *bus.Bus, name string, records []record) error {
	there, err := readBucket(ctx, b, name)
	if err != nil {
		return err
	}
	bucket, err := b.Bucket(ctx, name)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, e := range records {
		wanted[e.Key] = true
		if _, err := bucket.Put(ctx, e.Key, e.Value); err != nil {
			return err
		}
	}
	for _, e := range there {
		if wanted[e.Key] {
			continue
		}
		if err := bucket.Delete(ctx, e.Key, 0); err != nil {
			return err
		}
	}
	return nil
}

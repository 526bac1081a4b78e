package sessionwriter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/bus"
	"hydrallm/shared/query"
	"hydrallm/shared/settings"
)

// mirrorEvery is how often the bucket is compared with the database: one of them may have been restored from a backup.
const mirrorEvery = 5 * time.Second

// mirror keeps in a bucket, which all services follow, what the database has of settings: the database is the truth.
type mirror struct {
	store  *store.Store
	bucket *bus.Bucket
	log    *slog.Logger
}

// keep keeps the bucket as it is to be until ctx ends.
func (m *mirror) keep(ctx context.Context) {
	failed := false
	for {
		_, err := m.write(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			m.log.WarnContext(ctx, "telling the services which settings are stored", slog.Any("error", err))
		}
		failed = err != nil
		if !sleep(ctx, mirrorEvery) {
			return
		}
	}
}

// put answers query.PutSettings.
func (m *mirror) put(ctx context.Context, q query.ChangedSettings) (answer query.SettingsStored, err error) {
	set := make(map[string]string, len(q.Set))
	for name, value := range q.Set {
		set[name] = string(value)
	}
	if err := m.store.PutSettings(ctx, set, q.Clear); err != nil {
		return answer, err
	}
	answer.Status = query.Success
	answer.Revision, err = m.write(ctx)
	return answer, err
}

// write has the bucket say what the database does, and gives the revision that does. The bucket is read first: what the database says is at least as new,
// and who wrote meanwhile had read it later still.
func (m *mirror) write(ctx context.Context) (revision uint64, err error) {
	for {
		is, err := m.bucket.Get(ctx, settings.Key)
		if err != nil && !errors.Is(err, bus.ErrKeyNotFound) {
			return 0, err
		}
		values, err := m.store.Settings(ctx)
		if err != nil {
			return 0, err
		}
		raw := make(map[string]json.RawMessage, len(values))
		for name, value := range values {
			raw[name] = json.RawMessage(value)
		}
		want, err := json.Marshal(raw)
		if err != nil {
			return 0, fmt.Errorf("encoding the settings: %w", err)
		}
		switch {
		case is.Revision == 0:
			revision, err = m.bucket.Create(ctx, settings.Key, want)
		case bytes.Equal(is.Value, want):
			return is.Revision, nil
		default:
			revision, err = m.bucket.Update(ctx, settings.Key, want, is.Revision)
		}
		if !errors.Is(err, bus.ErrConflict) {
			return revision, err
		}
	}
}

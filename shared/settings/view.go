// Package settings gives a service the configuration as it is now: what its file says, and over it what operators have stored while the gateway
// runs. The database is the truth; the session writer keeps a copy of it in a bucket, which every service follows here, so that reading costs
// nothing and a change counts everywhere at once.
package settings

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/subject"
)

// Key is where the bucket has the stored values, a JSON object by the paths of the settings.
const Key = "live"

// View is the configuration as it is now. It is safe for concurrent use.
type View struct {
	log     *slog.Logger
	current atomic.Pointer[config.Config]

	mu       sync.Mutex // held while a change is taken over, and its functions run
	file     *config.Config
	stored   map[string]json.RawMessage
	revision uint64        // of the bucket
	moved    chan struct{} // closed when revision changes
	told     []func(now *config.Config)
	watch    *bus.Watch
}

// New makes a view of a configuration over which nothing is stored.
func New(file *config.Config, log *slog.Logger) *View {
	v := &View{log: log, file: file, moved: make(chan struct{})}
	v.current.Store(file)
	return v
}

// Config is the configuration as it is now. It must not be changed.
func (v *View) Config() *config.Config { return v.current.Load() }

// File is the configuration without what is stored.
func (v *View) File() *config.Config {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.file
}

// Stored gives the values that are stored, by the paths of the settings.
func (v *View) Stored() map[string]json.RawMessage {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.stored)
}

// OnChange has fn called after each change, one call at a time, and once at once. fn must be quick and must not call the view but for Config.
func (v *View) OnChange(fn func(now *config.Config)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told = append(v.told, fn)
	fn(v.current.Load())
}

// Follow takes over what is stored, and from then on each change. The caller must Stop the view.
func (v *View) Follow(ctx context.Context, b *bus.Bus) error {
	bucket, err := b.Bucket(ctx, subject.SettingsBucket)
	if err != nil {
		return err
	}
	v.watch, err = bucket.Watch(ctx, Key, v.observe)
	return err
}

// Stop ends the following.
func (v *View) Stop() {
	if v != nil {
		v.watch.Stop()
	}
}

// observe takes over what the bucket says. That it says nothing means that NATS has lost it, not the database.
func (v *View) observe(e bus.Entry) {
	var stored map[string]json.RawMessage
	if e.Deleted {
		return
	}
	if err := json.Unmarshal(e.Value, &stored); err != nil {
		v.log.Warn("the stored settings can't be read", slog.Any("error", err))
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stored, v.revision = stored, e.Revision
	v.apply()
	close(v.moved)
	v.moved = make(chan struct{})
}

// Rebase takes over another file.
func (v *View) Rebase(file *config.Config) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.file = file
	v.apply()
}

// apply makes the configuration anew. The caller holds mu. What this version does not know, or does not take, is left out.
func (v *View) apply() {
	now, wrong := v.file.With(v.stored)
	for _, f := range wrong {
		v.log.Warn("a stored setting does not count", slog.String("setting", f.Path), slog.String("reason", f.Message))
	}
	v.current.Store(now)
	for _, fn := range v.told {
		fn(now)
	}
}

// Await waits until the view has a revision of the bucket, or ctx ends.
func (v *View) Await(ctx context.Context, revision uint64) error {
	for {
		v.mu.Lock()
		there, moved := v.revision >= revision, v.moved
		v.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

package dispatcher

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/seal"
	"hydrallm/shared/subject"
)

// addedKeys are keys that operators add while the gateway runs. They are kept in a bucket, sealed under the admin key, so that they
// survive a restart and reach every dispatcher; the order of the bucket gives them the same index everywhere.
type addedKeys struct {
	d         *Dispatcher
	discovery *discover.Runner
	bucket    *bus.Bucket
	watch     *bus.Watch

	ctx     context.Context //nolint:containedctx // ends the writing, at the stop
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	places map[string]place // of the keys that came from the bucket, by their names there
	gone   chan struct{}    // closed, and made anew, when one of them is taken out
}

// place is where a key is.
type place struct {
	provider string
	index    int
}

// sealedKey is a value of the bucket.
type sealedKey struct {
	Provider string `json:"provider"`
	Sealed   []byte `json:"sealed"`
}

// follow takes in the keys that are there and those that come.
func (a *addedKeys) follow(ctx context.Context) error {
	a.ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if a.bucket, err = a.d.bus.Bucket(ctx, subject.KeysBucket); err != nil {
		return err
	}
	a.watch, err = a.bucket.Watch(ctx, "*.*", a.observe)
	return err
}

func (a *addedKeys) stop() {
	if a != nil {
		a.watch.Stop()
		if a.cancel != nil {
			a.cancel()
		}
		a.running.Wait()
	}
}

// observe adds a key of the bucket to its pool. One that can't be opened, because it was sealed under another admin key, is left alone.
func (a *addedKeys) observe(e bus.Entry) {
	var k sealedKey
	if e.Deleted {
		if e.Revision != 0 { // else it has vanished with the disk of NATS, and is worth keeping
			a.forget(e.Key)
		}
		return
	}
	if json.Unmarshal(e.Value, &k) != nil {
		return
	}
	pool := a.d.keys[k.Provider]
	if pool == nil {
		return
	}
	value, old, err := a.open(k.Sealed, k.Provider)
	if err != nil {
		a.d.log.Warn("a key that was added at run time can't be used: it is kept for the admin key that it was encrypted with", slog.String("provider", k.Provider),
			slog.Any("error", err))
		return
	}
	if old {
		a.running.Go(func() { a.reseal(e, k.Provider, value) })
	}
	p, _ := a.d.gateway().Provider(k.Provider)
	index, added := pool.Add(string(value), p.Tier)
	if !slices.ContainsFunc(p.Keys, func(k config.Key) bool { return k.Value.Reveal() == string(value) }) {
		a.mu.Lock()
		a.places[e.Key] = place{k.Provider, index}
		a.mu.Unlock()
	}
	if added {
		a.d.secrets.add(string(value))
		a.d.log.Info("key added", slog.String("provider", k.Provider), slog.Int("key", index))
		a.d.note(news{})
		if _, listed := a.d.models().Listing(k.Provider); !listed {
			a.discovery.RefreshSoon(k.Provider)
		}
	}
}

// open opens what was sealed under the admin key, or under the one before it, which old says.
func (a *addedKeys) open(sealed []byte, provider string) (value []byte, old bool, err error) {
	if value, err = seal.Open(a.secret(), sealed, provider); err == nil {
		return value, false, nil
	}
	if before := a.d.cfg.Gateway.Server.PreviousKey.Reveal(); before != "" {
		if value, again := seal.Open(before, sealed, provider); again == nil {
			return value, true, nil
		}
	}
	return nil, false, err
}

// reseal seals a key of the bucket under the admin key of now, in its place, unless another dispatcher was faster.
func (a *addedKeys) reseal(e bus.Entry, provider string, value []byte) {
	sealed, err := seal.Seal(a.secret(), value, provider)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(sealedKey{Provider: provider, Sealed: sealed}); err == nil {
			_, err = a.bucket.Update(a.ctx, e.Key, text, e.Revision)
		}
	}
	switch {
	case err == nil:
		a.d.log.Info("a key that was added at run time is encrypted with the new admin key", slog.String("provider", provider))
	case !errors.Is(err, bus.ErrConflict) && a.ctx.Err() == nil:
		a.d.log.Warn("encrypting a key with the new admin key; the next start tries again", slog.String("provider", provider), slog.Any("error", err))
	}
}

// forget takes a key out of its pool that was removed from the bucket.
func (a *addedKeys) forget(name string) {
	a.mu.Lock()
	at, ours := a.places[name]
	delete(a.places, name)
	if ours {
		a.d.keys[at.provider].Remove(at.index)
		close(a.gone)
		a.gone = make(chan struct{})
	}
	a.mu.Unlock()
	if !ours {
		return
	}
	a.d.log.Info("key removed", slog.String("provider", at.provider), slog.Int("key", at.index))
	a.d.note(news{})
}

// remove answers query.RemoveKey. A key of the configuration stays: it would be back after the next start.
func (a *addedKeys) remove(ctx context.Context, q query.KeyName) (query.Done, error) {
	pool, err := a.pool(q.Provider)
	if err != nil {
		return query.Done{}, err
	}
	at := place{provider: q.Provider}
	if at.index, err = named(pool.Snapshot(), q); err != nil {
		return query.Done{}, err
	}
	name := ""
	a.mu.Lock()
	for n, p := range a.places {
		if p == at {
			name = n
		}
	}
	a.mu.Unlock()
	if name == "" {
		return query.Done{}, fault.New(fault.Conflict, "This key is one of the configuration: remove it there")
	}
	if err := a.bucket.Delete(ctx, name, 0); err != nil {
		return query.Done{}, err
	}
	if err := a.taken(ctx, name); err != nil {
		return query.Done{}, err
	}
	return query.Done{Status: query.Success}, nil
}

// taken waits until the bucket has told that a key was removed. It tells what was added before first, as it does to all dispatchers: a pool whose only key
// is replaced is never without one.
func (a *addedKeys) taken(ctx context.Context, name string) error {
	for {
		a.mu.Lock()
		_, there := a.places[name]
		gone := a.gone
		a.mu.Unlock()
		if !there {
			return nil
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// named gives the index of the one key that is meant.
func named(keys []query.KeyStatus, q query.KeyName) (index int, err error) {
	if q.Index == nil && q.ID == "" {
		return 0, &fault.Fault{Kind: fault.Invalid, Message: "'index' or 'id' must say which key", Param: "index"}
	}
	found := 0
	for _, k := range keys {
		if (q.Index == nil || *q.Index == k.Index) && (q.ID == "" || q.ID == k.ID) {
			index, found = k.Index, found+1
		}
	}
	switch found {
	case 0:
		return 0, fault.New(fault.NotFound, "The provider has no such key")
	case 1:
		return index, nil
	}
	return 0, &fault.Fault{Kind: fault.Conflict, Message: "Several keys look like this: 'index' must say which one", Param: "index"}
}

func (a *addedKeys) secret() string { return a.d.cfg.Gateway.Server.AdminKey.Reveal() }

// add answers query.AddKeys: only keys that are really new count.
func (a *addedKeys) add(ctx context.Context, q query.NewKeys) (answer query.KeysAdded, err error) {
	pool, err := a.pool(q.Provider)
	if err != nil {
		return answer, err
	}
	for _, sealed := range q.Keys {
		value, old, err := a.open(sealed, q.Provider)
		if err != nil {
			return answer, fault.New(fault.Invalid, "The keys can't be opened: ingress and dispatcher have different admin keys")
		}
		key := strings.TrimSpace(string(value))
		if key == "" || pool.Has(key) {
			continue
		}
		if old { // an ingress that does not have the new admin key yet
			if sealed, err = seal.Seal(a.secret(), value, q.Provider); err != nil {
				return answer, err
			}
		}
		isNew, err := a.store(ctx, q.Provider, key, sealed)
		if err != nil {
			return answer, err
		}
		if isNew {
			answer.Added++
		}
	}
	answer.Status = query.Success
	return answer, nil
}

// pool gives the pool of a provider that has one.
func (a *addedKeys) pool(provider string) (*keypool.Pool, error) {
	if pool := a.d.keys[provider]; pool != nil {
		return pool, nil
	}
	message := "There is no provider with this id" // it isn't repeated: it may be a key that was put in the wrong place
	if _, known := a.d.gateway().Provider(provider); known {
		message = fmt.Sprintf("The provider %.100q has no pool of keys", provider)
	}
	return nil, &fault.Fault{Kind: fault.Invalid, Message: message, Param: "provider"}
}

// store puts a key into the bucket, from where every dispatcher takes it. Its name there tells nothing of it, but is the same for the same key.
func (a *addedKeys) store(ctx context.Context, provider, key string, sealed []byte) (isNew bool, err error) {
	name, err := seal.Fingerprint(a.secret(), key, provider)
	if err != nil {
		return false, err
	}
	value, err := json.Marshal(sealedKey{Provider: provider, Sealed: sealed})
	if err != nil {
		return false, fmt.Errorf("encoding a key: %w", err)
	}
	_, err = a.bucket.Create(ctx, hex.EncodeToString([]byte(provider))+"."+name, value)
	if errors.Is(err, bus.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

package dispatcher

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/shared/bus"
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
}

// sealedKey is a value of the bucket.
type sealedKey struct {
	Provider string `json:"provider"`
	Sealed   []byte `json:"sealed"`
}

// follow takes in the keys that are there and those that come.
func (a *addedKeys) follow(ctx context.Context) error {
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
	}
}

// observe adds a key of the bucket to its pool. One that can't be opened, because it was sealed under another admin key, is left alone.
func (a *addedKeys) observe(e bus.Entry) {
	var k sealedKey
	if e.Deleted || json.Unmarshal(e.Value, &k) != nil {
		return
	}
	pool := a.d.keys[k.Provider]
	if pool == nil {
		return
	}
	value, err := seal.Open(a.secret(), k.Sealed, k.Provider)
	if err != nil {
		a.d.log.Warn("a key that was added at run time can't be used", slog.String("provider", k.Provider), slog.Any("error", err))
		return
	}
	p, _ := a.d.cfg.Gateway.Provider(k.Provider)
	if index, added := pool.Add(string(value), p.Tier); added {
		a.d.secrets.add(string(value))
		a.d.log.Info("key added", slog.String("provider", k.Provider), slog.Int("key", index))
		a.d.note(news{})
		if _, listed := a.d.models().Listing(k.Provider); !listed {
			a.discovery.RefreshSoon(k.Provider)
		}
	}
}

func (a *addedKeys) secret() string { return a.d.cfg.Gateway.Server.AdminKey.Reveal() }

// add answers query.AddKeys: only keys that are really new count.
func (a *addedKeys) add(ctx context.Context, q query.NewKeys) (answer query.KeysAdded, err error) {
	pool := a.d.keys[q.Provider]
	if pool == nil {
		message := fmt.Sprintf("There is no provider %.100q", q.Provider)
		if _, known := a.d.cfg.Gateway.Provider(q.Provider); known {
			message = fmt.Sprintf("The provider %.100q has no pool of keys", q.Provider)
		}
		return answer, &fault.Fault{Kind: fault.Invalid, Message: message, Param: "provider"}
	}
	for _, sealed := range q.Keys {
		value, err := seal.Open(a.secret(), sealed, q.Provider)
		if err != nil {
			return answer, fault.New(fault.Invalid, "The keys can't be opened: ingress and dispatcher have different admin keys")
		}
		key := strings.TrimSpace(string(value))
		if key == "" || pool.Has(key) {
			continue
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

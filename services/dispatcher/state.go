package dispatcher

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/services/dispatcher/internal/sessionheader"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/dispatcherhealth"
)

// publishEvery is how often a dispatcher shows that it is there. Those who look take three silent intervals for an absence.
const publishEvery = 3 * time.Second

// shareLimit bounds one write: what waits for a server that has died must not keep it back from the one that takes its place.
const shareLimit = 2 * time.Second

// state tells the other services what this dispatcher knows, and shares openings of breakers and cooldowns of keys with other dispatchers and with
// those that come after a restart.
type state struct {
	id       string
	bus      *bus.Bus
	breakers *breaker.Set
	keys     map[string]*keypool.Pool // by provider
	gateway  func() *config.Config
	log      *slog.Logger

	owner   string // of what this run tells
	bucket  *bus.Bucket
	disk    *bus.Bucket // what outlasts a restart
	watches []*bus.Watch
	news    <-chan news
	untold  map[news]struct{} // what could not be told; used by run, and by flush after it
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu     sync.Mutex
	onDisk map[string]lasting // by name
}

func (d *Dispatcher) newState() *state {
	return &state{
		id: d.cfg.ID, bus: d.bus, breakers: d.breakers, keys: d.keys, gateway: d.gateway, log: d.log, news: d.news,
		owner: rand.Text(), untold: map[news]struct{}{}, onDisk: map[string]lasting{},
	}
}

// start shows that this dispatcher is there. It comes after follow.
func (s *state) start(ctx context.Context) error {
	interrupted := s.bus.Interrupted()
	if err := s.publish(ctx); err != nil {
		return err
	}
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.wg.Go(func() { s.run(runCtx, interrupted) })
	return nil
}

func (s *state) run(ctx context.Context, interrupted <-chan struct{}) {
	ticker := time.NewTicker(publishEvery)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-interrupted: // the bucket may be empty now
			interrupted = s.bus.Interrupted()
			err = s.publish(ctx)
		case <-ticker.C:
			if s.bus.Ready() { // one that gets no requests does not count as there
				err = errors.Join(s.publish(ctx), s.retell(ctx), s.sweep(ctx))
			}
		case n := <-s.news:
			// Routing should know at once; a burst of news is told by the ticker.
			if err = s.tell(ctx, n); err == nil && len(s.news) == 0 {
				err = s.publish(ctx)
			}
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("sharing state", slog.Any("error", err))
		}
	}
}

// stop ends the publication and takes this dispatcher off the list. It works on a state that started in part, or is nil.
func (s *state) stop(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if s.cancel != nil {
		s.cancel()
	}
	s.wg.Wait()
	for _, w := range s.watches {
		w.Stop()
	}
	if s.bucket == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shareLimit)
	defer cancel()
	return s.bucket.Delete(ctx, s.key(), 0)
}

func (s *state) key() string { return dispatcherhealth.Key(s.id) }

func (s *state) publish(ctx context.Context) error {
	_, err := put(ctx, s.bucket, s.key(), contract.DispatcherState{ID: s.id, Providers: s.providers()})
	return err
}

// providers is what routing needs to know: nothing here takes a probe.
func (s *state) providers() map[string]contract.ProviderState {
	providers := s.gateway().Providers
	all := make(map[string]contract.ProviderState, len(providers))
	for _, p := range providers {
		state := contract.ProviderState{Open: !s.breakers.Get(plan.ProviderCircuit(p.ID)).Ready(), Keys: map[string]int{}}
		switch pool := s.keys[p.ID]; {
		case pool != nil:
			state.Keys = pool.Count("")
		case len(p.Keys) > 0:
			state.Keys[p.Keys[0].Tier]++
		default: // it wants no key
			state.Keys[contract.TierUnknown]++
		}
		all[p.ID] = state
	}
	return all
}

// store is a bucket with the compare-and-swap that slots and dialogues want.
type store struct{ bucket *bus.Bucket }

var (
	_ slot.KV          = store{}
	_ sessionheader.KV = store{}
)

func (s store) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	e, err := s.bucket.Get(ctx, key)
	if errors.Is(err, bus.ErrKeyNotFound) {
		return nil, 0, nil
	}
	return e.Value, e.Revision, err
}

func (s store) Swap(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	var rev uint64
	var err error
	if revision == 0 {
		rev, err = s.bucket.Create(ctx, key, value)
	} else {
		rev, err = s.bucket.Update(ctx, key, value, revision)
	}
	if errors.Is(err, bus.ErrConflict) {
		return 0, nil
	}
	return rev, err
}

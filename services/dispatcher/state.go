package dispatcher

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/services/dispatcher/internal/sessionheader"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/dispatcherhealth"
	"hydrallm/shared/subject"
)

// publishEvery is how often a dispatcher shows that it is there. Those who look take three silent intervals for an absence.
const publishEvery = 3 * time.Second

// shareLimit bounds one write: what waits for a server that has died must not keep it back from the one that takes its place.
const shareLimit = 2 * time.Second

// state tells the other services what this dispatcher knows, and shares openings of breakers and cooldowns of keys with other dispatchers.
type state struct {
	id       string
	bus      *bus.Bus
	breakers *breaker.Set
	keys     map[string]*keypool.Pool // by provider
	gateway  *config.Config
	log      *slog.Logger

	bucket  *bus.Bucket
	watches []*bus.Watch
	news    <-chan news
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// news is something that the other dispatchers should know: a channel that opened, or a key that rests. Empty, it is only that routing should
// know soon what is different here.
type news struct {
	channel  string
	provider string
	cooldown keypool.Cooldown
}

// newsQueue bounds what waits to be told. What does not fit is not told: the others find out by themselves.
const newsQueue = 256

func (d *Dispatcher) newState() *state {
	return &state{id: d.cfg.ID, bus: d.bus, breakers: d.breakers, keys: d.keys, gateway: d.cfg.Gateway, log: d.log, news: d.news}
}

// note queues news for the state of the run. It does not block.
func (d *Dispatcher) note(n news) {
	select {
	case d.news <- n:
	default:
	}
}

func (s *state) start(ctx context.Context) error {
	var err error
	if s.bucket, err = s.bus.Bucket(ctx, subject.StateBucket); err != nil {
		return err
	}
	for pattern, observe := range map[string]func(bus.Entry){"circuit.*": s.observeCircuit, "cooldown.*": s.observeCooldown} {
		watch, err := s.bucket.Watch(ctx, pattern, observe)
		if err != nil {
			return err
		}
		s.watches = append(s.watches, watch)
	}
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
				err = s.publish(ctx)
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
	return s.put(ctx, s.key(), contract.DispatcherState{ID: s.id, Providers: s.providers()})
}

// providers is what routing needs to know: nothing here takes a probe.
func (s *state) providers() map[string]contract.ProviderState {
	all := make(map[string]contract.ProviderState, len(s.gateway.Providers))
	for _, p := range s.gateway.Providers {
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

// circuit is one opening, told to the other dispatchers.
type circuit struct {
	Channel string    `json:"channel"`
	Owner   string    `json:"owner"`
	Until   time.Time `json:"until"`
}

// cooldownState is one cooldown of a key, told to the other dispatchers. Keys are named by their place in the configuration, never by value.
type cooldownState struct {
	Provider string    `json:"provider"`
	Index    int       `json:"index"`
	Model    string    `json:"model,omitempty"`
	Class    string    `json:"class"`
	Owner    string    `json:"owner"`
	Until    time.Time `json:"until"`
}

// keyOf makes a bucket key of words that may hold anything.
func keyOf(kind string, words ...any) string {
	return kind + "." + hex.EncodeToString(fmt.Append(nil, words...))
}

func (s *state) tell(ctx context.Context, n news) error {
	if n == (news{}) {
		return nil
	}
	if n.provider != "" {
		r := cooldownState{Provider: n.provider, Index: n.cooldown.Index, Model: n.cooldown.Model, Class: string(n.cooldown.Class), Owner: s.id, Until: n.cooldown.Until}
		return s.put(ctx, keyOf("cooldown", n.provider, "/", n.cooldown.Index, "/", n.cooldown.Model), r)
	}
	until, ok := s.breakers.Get(n.channel).Opening()
	if !ok {
		return nil
	}
	return s.put(ctx, keyOf("circuit", n.channel), circuit{Channel: n.channel, Owner: s.id, Until: until})
}

func (s *state) put(ctx context.Context, key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding shared state: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, shareLimit)
	defer cancel()
	_, err = s.bucket.Put(ctx, key, data)
	return err
}

// observeCircuit takes in an opening that another dispatcher tells.
func (s *state) observeCircuit(e bus.Entry) {
	var c circuit
	if e.Deleted || json.Unmarshal(e.Value, &c) != nil || c.Owner == s.id {
		return
	}
	s.breakers.Get(c.Channel).Observe(c.Until)
}

// observeCooldown takes in the rest of a key that another dispatcher tells.
func (s *state) observeCooldown(e bus.Entry) {
	var r cooldownState
	if e.Deleted || json.Unmarshal(e.Value, &r) != nil || r.Owner == s.id {
		return
	}
	if pool := s.keys[r.Provider]; pool != nil {
		pool.Observe(keypool.Cooldown{Index: r.Index, Model: r.Model, Class: classify.Class(r.Class), Until: r.Until})
	}
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

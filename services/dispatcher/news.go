package dispatcher

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/subject"
)

const (
	// newsQueue bounds what waits to be told. What does not fit is not told: the others find out by themselves.
	newsQueue = 256
	// lastingFrom is how much longer a circuit must be open, or a key rest, to be kept on disk.
	lastingFrom = time.Minute
	// sweepAfter is how long something must be over before it is removed: clocks differ.
	sweepAfter = time.Minute
	// sweepAtOnce bounds what is removed between two publications.
	sweepAtOnce = 64
)

// news names something that the other dispatchers should know about: a channel that opened or closed, or the rest of a key, for a model or for all
// ("") that began or ended. What is told is how it is at that moment. Empty, it is only that routing should know soon what is different here.
type news struct {
	channel  string
	provider string
	index    int
	model    string
}

// note queues news for the state of the run. It does not block.
func (d *Dispatcher) note(n news) {
	select {
	case d.news <- n:
	default:
	}
}

// circuit is one opening, told to the other dispatchers.
type circuit struct {
	Channel string    `json:"channel"`
	Target  string    `json:"target"` // mark of what it guards: an opening says nothing of another address or other keys
	Owner   string    `json:"owner"`
	Until   time.Time `json:"until"`
}

// cooldownState is one cooldown of a key, told to the other dispatchers. Keys are named by a mark, never by value, and not by their place,
// which another key may have after a restart.
type cooldownState struct {
	Provider string    `json:"provider"`
	Key      string    `json:"key"`
	Model    string    `json:"model,omitempty"`
	Class    string    `json:"class"`
	Owner    string    `json:"owner"`
	Until    time.Time `json:"until"`
}

// lasting is what is known of an entry on disk.
type lasting struct {
	until    time.Time
	revision uint64
}

// target gives the mark of what a circuit guards, "" for one that does not exist.
func target(cfg *config.Config, channel string) string {
	model, id := "", strings.TrimPrefix(channel, plan.ProviderCircuit(""))
	if id == channel {
		u, ok := cfg.Upstream(channel)
		if !ok {
			return ""
		}
		model, id = u.Model, u.Provider
	}
	p, ok := cfg.Provider(id)
	if !ok {
		return ""
	}
	parts := []string{p.URL, model}
	for _, k := range p.Keys {
		parts = append(parts, k.Value.Reveal())
	}
	return keypool.Mark(parts...)
}

// follow takes in what other dispatchers tell and what is on disk. It returns when it knows what is there.
func (s *state) follow(ctx context.Context) error {
	var err error
	if s.bucket, err = s.bus.Bucket(ctx, subject.StateBucket); err != nil {
		return err
	}
	if s.disk, err = s.bus.Bucket(ctx, subject.RestsBucket); err != nil {
		return err
	}
	for _, w := range []struct {
		bucket  *bus.Bucket
		pattern string
		observe func(bus.Entry)
	}{
		{s.bucket, "circuit.*", func(e bus.Entry) { s.observe(e) }},
		{s.bucket, "cooldown.*", func(e bus.Entry) { s.observe(e) }},
		{s.disk, "*.*", s.observeLasting},
	} {
		watch, err := w.bucket.Watch(ctx, w.pattern, w.observe)
		if err != nil {
			return err
		}
		s.watches = append(s.watches, watch)
	}
	return nil
}

// keyOf makes a bucket key of words that may hold anything.
func keyOf(kind string, words ...any) string {
	return kind + "." + hex.EncodeToString(fmt.Append(nil, words...))
}

// tell tells how it is with what the news are about, and tries again later if it can't.
func (s *state) tell(ctx context.Context, n news) error {
	err := s.tellOnce(ctx, n)
	if err == nil {
		delete(s.untold, n)
	} else if len(s.untold) < newsQueue {
		s.untold[n] = struct{}{}
	}
	return err
}

// retell tells what could not be told before.
func (s *state) retell(ctx context.Context) error {
	for n := range s.untold {
		if err := s.tell(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// flush tells what was learnt up to the end, for those who come after a restart. It comes after stop.
func (s *state) flush(ctx context.Context) error {
	if s == nil || s.disk == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shareLimit)
	defer cancel()
	for {
		select {
		case n := <-s.news:
			if err := s.tell(ctx, n); err != nil {
				return err
			}
		default:
			return s.retell(ctx)
		}
	}
}

func (s *state) tellOnce(ctx context.Context, n news) error {
	var name string
	var value any
	var until time.Time
	switch {
	case n.provider != "":
		name, value, until = s.cooldown(n)
	case n.channel != "":
		b := s.breakers.Get(n.channel)
		end, ok := b.Opening()
		if !ok && b.State() == breaker.Open {
			return nil // the one who opened it tells
		}
		name, value, until = keyOf("circuit", n.channel), circuit{Channel: n.channel, Target: target(s.gateway(), n.channel), Owner: s.owner, Until: end}, end
	default:
		return nil
	}
	left := time.Until(until)
	if left > lastingFrom {
		revision, err := put(ctx, s.disk, name, value)
		if err == nil {
			s.remember(name, lasting{until, revision})
		}
		return err
	}
	if left > 0 {
		if _, err := put(ctx, s.bucket, name, value); err != nil {
			return err
		}
	}
	if old, there := s.remembered(name); there && until.Before(old.until) {
		return s.remove(ctx, name, old)
	}
	return nil
}

// cooldown gives the rest that the news are about, with a zero end when there is none.
func (s *state) cooldown(n news) (name string, value any, until time.Time) {
	pool := s.keys[n.provider]
	mark := pool.MarkOf(n.index)
	c, ok := pool.Cooling(n.index, n.model)
	if !ok {
		c.Until = time.Time{}
	}
	return keyOf("cooldown", n.provider, "/", mark, "/", n.model), cooldownState{
		Provider: n.provider, Key: mark, Model: n.model, Class: string(c.Class), Owner: s.owner, Until: c.Until,
	}, c.Until
}

// sweep removes from the disk what is over.
func (s *state) sweep(ctx context.Context) error {
	over := map[string]lasting{}
	s.mu.Lock()
	for name, l := range s.onDisk {
		if time.Since(l.until) > sweepAfter && len(over) < sweepAtOnce {
			over[name] = l
		}
	}
	s.mu.Unlock()
	for name, l := range over {
		if err := s.remove(ctx, name, l); err != nil {
			return err
		}
	}
	return nil
}

// remove takes an entry off the disk, unless another dispatcher was faster or wrote a newer one.
func (s *state) remove(ctx context.Context, name string, l lasting) error {
	ctx, cancel := context.WithTimeout(ctx, shareLimit)
	defer cancel()
	if err := s.disk.Delete(ctx, name, l.revision); err != nil && !errors.Is(err, bus.ErrConflict) {
		return err
	}
	s.forget(name, l)
	return nil
}

func (s *state) remembered(name string) (l lasting, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, there = s.onDisk[name]
	return l, there
}

func (s *state) remember(name string, l lasting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onDisk[name] = l
}

// forget drops what is known of an entry, unless there is a newer one.
func (s *state) forget(name string, l lasting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onDisk[name] == l {
		delete(s.onDisk, name)
	}
}

// put writes a value. What waits for a server that has died must not wait for long.
func put(ctx context.Context, bucket *bus.Bucket, key string, v any) (revision uint64, err error) {
	data, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encoding shared state: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, shareLimit)
	defer cancel()
	return bucket.Put(ctx, key, data)
}

// observeLasting takes in an entry on disk. One that can't be read is over.
func (s *state) observeLasting(e bus.Entry) {
	until := s.observe(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Deleted {
		delete(s.onDisk, e.Key)
	} else {
		s.onDisk[e.Key] = lasting{until, e.Revision}
	}
}

// observe takes in what another dispatcher tells, or an earlier run of this one, and gives its end.
func (s *state) observe(e bus.Entry) (until time.Time) {
	switch {
	case e.Deleted:
	case strings.HasPrefix(e.Key, "circuit."):
		var c circuit
		if json.Unmarshal(e.Value, &c) != nil {
			return
		}
		if c.Owner != s.owner && c.Target == target(s.gateway(), c.Channel) {
			s.breakers.Get(c.Channel).Observe(c.Until)
		}
		return c.Until
	default:
		var r cooldownState
		if json.Unmarshal(e.Value, &r) != nil {
			return
		}
		if pool := s.keys[r.Provider]; pool != nil && r.Owner != s.owner {
			pool.Observe(keypool.Cooldown{Index: pool.Find(r.Key), Model: r.Model, Class: classify.Class(r.Class), Until: r.Until})
		}
		return r.Until
	}
	return
}

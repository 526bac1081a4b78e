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
	"hydrallm/services/dispatcher/internal/sessionheader"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/bus"
	"hydrallm/shared/subject"
)

// publishEvery is how often a dispatcher shows that it is there. Those who look take three silent intervals for an absence.
const publishEvery = 3 * time.Second

// state tells the other services what this dispatcher knows, and shares openings of breakers with other dispatchers.
type state struct {
	id       string
	bus      *bus.Bus
	breakers *breaker.Set
	slots    slot.Claimer
	log      *slog.Logger

	bucket *bus.Bucket
	watch  *bus.Watch
	opened chan string // channels whose opening is to be told
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// openings waiting to be told; more at the same moment are told by the next regular publication.
const openedQueue = 256

func newState(id string, b *bus.Bus, log *slog.Logger) *state {
	return &state{id: id, bus: b, log: log, opened: make(chan string, openedQueue)}
}

// note queues an opening. It does not block.
func (s *state) note(channel string) {
	select {
	case s.opened <- channel:
	default:
	}
}

func (s *state) start(ctx context.Context) error {
	var err error
	if s.bucket, err = s.bus.Bucket(ctx, subject.StateBucket); err != nil {
		return err
	}
	if s.watch, err = s.bucket.Watch(ctx, "circuit.*", s.observe); err != nil {
		return err
	}
	if err := s.publish(ctx); err != nil {
		return err
	}
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.wg.Go(func() { s.run(runCtx) })
	return nil
}

func (s *state) run(ctx context.Context) {
	ticker := time.NewTicker(publishEvery)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			err = s.publish(ctx)
		case channel := <-s.opened:
			err = s.tell(ctx, channel)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("sharing state", slog.Any("error", err))
		}
	}
}

// stop ends the publication and takes this dispatcher off the list.
func (s *state) stop(ctx context.Context) error {
	if s.cancel != nil {
		s.cancel()
	}
	s.wg.Wait()
	errs := []error{s.watch.Stop()}
	if s.bucket != nil {
		errs = append(errs, s.bucket.Delete(ctx, s.key(), 0))
	}
	return errors.Join(errs...)
}

func (s *state) key() string { return "dispatcher." + s.id }

// snapshot is what a dispatcher publishes.
type snapshot struct {
	ID       string                      `json:"id"`
	Circuits map[string]breaker.Snapshot `json:"circuits"`
	Slots    []slot.Usage                `json:"slots"`
}

func (s *state) publish(ctx context.Context) error {
	data, err := json.Marshal(snapshot{ID: s.id, Circuits: s.breakers.Snapshot(), Slots: s.slots.Active()})
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	_, err = s.bucket.Put(ctx, s.key(), data)
	return err
}

// circuit is one opening, told to the other dispatchers.
type circuit struct {
	Channel string    `json:"channel"`
	Owner   string    `json:"owner"`
	Until   time.Time `json:"until"`
}

func circuitKey(channel string) string { return "circuit." + hex.EncodeToString([]byte(channel)) }

func (s *state) tell(ctx context.Context, channel string) error {
	until, ok := s.breakers.Get(channel).Opening()
	if !ok {
		return nil
	}
	data, err := json.Marshal(circuit{Channel: channel, Owner: s.id, Until: until})
	if err != nil {
		return fmt.Errorf("encoding an opening: %w", err)
	}
	_, err = s.bucket.Put(ctx, circuitKey(channel), data)
	return err
}

// observe takes in an opening that another dispatcher tells.
func (s *state) observe(e bus.Entry) {
	var c circuit
	if e.Deleted || json.Unmarshal(e.Value, &c) != nil || c.Owner == s.id {
		return
	}
	s.breakers.Get(c.Channel).Observe(c.Until)
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

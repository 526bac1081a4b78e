package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

const (
	maxLate  = 512             // facts that are stored late at the same time, of at most some MiB each
	lateStop = 3 * time.Second // for those that are left when the dispatcher stops
)

// keeper makes facts of what is answered in sessions and of responses that clients want to have stored. What can't be stored while the client waits for the end of its
// answer, as between two leaders of a cluster, is stored as soon as it can be.
type keeper struct {
	bus    *bus.Bus
	log    *slog.Logger
	places chan struct{}
	late   sync.WaitGroup
	time   context.Context //nolint:containedctx // ends when there is none left
	cancel context.CancelFunc
}

// newKeeper makes a keeper, which the caller must stop.
func newKeeper(b *bus.Bus, log *slog.Logger) *keeper {
	k := &keeper{bus: b, log: log, places: make(chan struct{}, maxLate)}
	k.time, k.cancel = context.WithCancel(context.Background())
	return k
}

// Keep returns when the fact is stored. One of the same request and kind is the same fact.
func (k *keeper) Keep(ctx context.Context, turn *contract.Turn) error {
	data, err := json.Marshal(turn)
	if err != nil {
		return fmt.Errorf("encoding a turn: %w", err)
	}
	return k.store(ctx, subject.Turn(turn.Session, string(turn.Kind)), turn.RequestID+"."+string(turn.Kind), data)
}

// KeepResponse returns when the fact is stored. One of the same response is the same fact.
func (k *keeper) KeepResponse(ctx context.Context, r *contract.StoredResponse) error {
	data, err := r.Encode()
	if err != nil {
		return err
	}
	return k.store(ctx, subject.Stored(r.ID), r.ID, data)
}

// store publishes a fact. When ctx ends before the server has it, the error says so, and it is published later.
func (k *keeper) store(ctx context.Context, subj, id string, data []byte) error {
	err := k.bus.PublishFact(ctx, subj, id, data)
	if err == nil || ctx.Err() == nil {
		return err
	}
	select {
	case k.places <- struct{}{}:
	default:
		return fmt.Errorf("too many facts wait already: %w", err)
	}
	k.late.Go(func() {
		defer func() { <-k.places }()
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(k.time, cancel)() //nolint:contextcheck // it ends with both
		if err := k.bus.PublishFact(ctx, subj, id, data); err != nil {
			k.log.WarnContext(ctx, "a fact is lost", slog.String("subject", subj), slog.Any("error", err))
		}
	})
	return fmt.Errorf("it will be stored later: %w", err)
}

// stop waits for a moment for what is to be stored late. Nothing may be kept any more.
func (k *keeper) stop() {
	if k == nil {
		return
	}
	timer := time.AfterFunc(lateStop, k.cancel)
	defer timer.Stop()
	k.late.Wait()
	k.cancel()
}

package dispatcher

import (
	"context"
	"errors"

	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/sessionheader"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/services/dispatcher/internal/usage"
	"hydrallm/shared/bus"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// run is what exists between Start and Stop.
type run struct {
	d         *Dispatcher
	exec      *execute.Executor
	slots     slot.Acquirer
	shared    *slot.Shared // slots when the dispatcher is not alone
	waits     waits
	usage     *usage.Recorder
	keeper    *keeper
	added     *addedKeys
	discovery *discover.Runner
	prober    *keypool.Prober
	state     *state
	work      *bus.Consumer
	queries   *bus.Service
}

func (d *Dispatcher) begin(ctx context.Context, r *run) error {
	r.d = d
	if err := r.share(ctx); err != nil {
		return err
	}
	r.discovery = d.newDiscovery()
	models, err := modelindex.Follow(ctx, d.bus, d.relist(r.discovery))
	if err != nil {
		return err
	}
	d.modelIndex.Store(models)
	if err := d.forgetMoved(ctx); err != nil {
		return err
	}
	r.prober = keypool.NewProber(d.keys, d.probe, d.cfg.Gateway.Resilience.ProbeInterval, d.log)
	r.added = &addedKeys{d: d, discovery: r.discovery, places: map[string]place{}, gone: make(chan struct{})}
	if err := r.added.follow(ctx); err != nil {
		return err
	}
	r.state = d.newState()
	if err := r.state.follow(ctx); err != nil { // before the first request, and behind the keys that were added
		return err
	}
	r.usage = usage.NewRecorder(d.bus)
	r.exec.Ledger = r.usage
	r.keeper = newKeeper(d.bus, d.log)
	r.exec.Turns, r.exec.Responses = r.keeper, r.keeper
	if r.queries, err = d.bus.Serve(ctx, r.answers()); err != nil {
		return err
	}
	if r.work, err = d.bus.ConsumeWork(ctx, bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: maxInFlight, Refused: r.refused}, r.handle); err != nil {
		return err
	}
	if err := r.state.start(ctx); err != nil {
		return err
	}
	r.discovery.Start()
	return r.prober.Start(ctx)
}

// share sets up what has to agree with other dispatchers: slots are counted and dialogues known in this process alone, or through the
// stores.
func (r *run) share(ctx context.Context) error {
	d, exec := r.d, *r.d.exec
	r.exec = &exec
	r.slots, exec.Dialogues = &slot.Local{}, &sessionheader.Registry{}
	if !d.cfg.Alone {
		slots, err := d.bus.Bucket(ctx, subject.SlotsBucket)
		if err != nil {
			return err
		}
		dialogues, err := d.bus.Bucket(ctx, subject.DialogueBucket)
		if err != nil {
			return err
		}
		r.shared = slot.NewShared(ctx, store{slots}, slot.Config{Owner: d.cfg.ID, Patience: d.cfg.Gateway.Server.QueueTimeout, Lost: d.bus.Interrupted}, d.log)
		r.slots, exec.Dialogues = r.shared, sessionheader.NewShared(store{dialogues}, d.log)
	}
	exec.Slots = r.slots
	if err := r.waits.begin(ctx, d); err != nil {
		return err
	}
	exec.Queues = r.waits.set
	return nil
}

// answers is what the dispatcher answers to other services.
func (r *run) answers() bus.QueryConfig {
	h := query.Handlers{}
	query.GetStatus.Handle(h, r.status)
	query.AddKeys.Handle(h, r.added.add)
	query.RemoveKey.Handle(h, r.added.remove)
	query.GetCommLog.Handle(h, func(_ context.Context, q query.CommLogs) ([]query.CommEntry, error) {
		return r.d.comm.Newest(q.Limit), nil
	})
	query.ClearCommLog.Handle(h, func(context.Context, query.None) (query.Done, error) {
		r.d.comm.Clear()
		return query.Done{Status: query.Success}, nil
	})
	query.ProbeKeys.Handle(h, r.probeKeys)
	query.RefreshModels.Handle(h, r.refreshModels)
	return bus.QueryConfig{Service: query.Dispatcher, Instance: r.d.cfg.ID, Version: r.d.cfg.Version, Handlers: h}
}

// end stops what there is of r. Probes and discovery stop before the queries that wait for them.
func (d *Dispatcher) end(ctx context.Context, r *run) error {
	defer context.AfterFunc(ctx, r.usage.Hasten)() // requests wait for their records
	r.waits.dismiss()                              // those who wait can do so elsewhere
	errs := []error{r.state.stop(ctx), r.work.Stop(ctx), r.waits.end(ctx), r.prober.Stop(ctx), r.state.flush(ctx)}
	r.discovery.Stop()
	errs = append(errs, r.queries.Stop(ctx))
	r.added.stop()
	d.modelIndex.Swap(nil).Stop()
	r.usage.Stop()
	r.keeper.stop()
	if r.shared != nil {
		ctx, cancel := givingBack(ctx)
		defer cancel()
		errs = append(errs, r.shared.Close(ctx))
	}
	d.dialects.close()
	d.client.Close()
	return errors.Join(errs...)
}

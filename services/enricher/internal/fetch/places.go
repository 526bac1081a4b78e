package fetch

import (
	"context"
	"sync"
)

// enter waits for a place at the host and then for one of all places, so that a slow host keeps nobody else waiting. The caller leaves both.
func (f *Fetcher) enter(ctx context.Context, host string) (leaveHost, leave func(), err error) {
	leaveHost, err = f.hosts.enter(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	select {
	case f.places <- struct{}{}:
		return leaveHost, func() { <-f.places }, nil
	case <-ctx.Done():
		leaveHost()
		return nil, nil, context.Cause(ctx)
	}
}

// hosts has a gate for each host that somebody is at or waits for.
type hosts struct {
	limit int
	mu    sync.Mutex
	gates map[string]*gate
}

type gate struct {
	places chan struct{}
	users  int // at the host or waiting
}

func (h *hosts) enter(ctx context.Context, host string) (leave func(), err error) {
	h.mu.Lock()
	g := h.gates[host]
	if g == nil {
		g = &gate{places: make(chan struct{}, h.limit)}
		h.gates[host] = g
	}
	g.users++
	h.mu.Unlock()
	forget := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(h.gates, host)
		}
	}
	select {
	case g.places <- struct{}{}:
		return func() { <-g.places; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, context.Cause(ctx)
	}
}

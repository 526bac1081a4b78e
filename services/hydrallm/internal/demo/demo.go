// Package demo is what a gateway that is only shown has around it: two scripted providers, of which each can be broken, a search engine and a page, all on
// this machine, and the configuration that knows them.
package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"hydrallm/services/hydrallm/internal/mockllm"
	"hydrallm/services/ingress"
)

// wordPause is how long the scripted models take for a word.
const wordPause = 15 * time.Millisecond

// Demo is the surroundings. It implements ingress.Demo.
type Demo struct {
	providers []*provider
	web       *web
}

var _ ingress.Demo = (*Demo)(nil)

// provider is a scripted upstream with a switch before it.
type provider struct {
	id     string
	faults *faults
	server *mockllm.Server
}

// ids of the providers, the preferred one first.
var ids = []string{"alpha", "beta"}

// Start listens on free ports of this machine. The caller must Stop what it gets, also beside an error.
func Start(ctx context.Context) (*Demo, error) {
	d := &Demo{}
	for _, id := range ids {
		f := newFaults()
		p := &provider{id: id, faults: f, server: mockllm.New(mockllm.Config{Listen: "127.0.0.1:0", Delay: wordPause, Wrap: f.wrap})}
		if err := p.server.Start(ctx); err != nil {
			return d, fmt.Errorf("starting the provider %s: %w", id, err)
		}
		d.providers = append(d.providers, p)
	}
	var err error
	d.web, err = startWeb(ctx)
	return d, err
}

// Stop ends everything. Answers under way may end until ctx does.
func (d *Demo) Stop(ctx context.Context) error {
	var errs []error
	for _, p := range d.providers {
		p.faults.stop()
		errs = append(errs, p.server.Stop(ctx))
	}
	if d.web != nil {
		errs = append(errs, d.web.stop(ctx))
	}
	return errors.Join(errs...)
}

// Upstreams tells how the providers are.
func (d *Demo) Upstreams() []ingress.DemoUpstream {
	var all []ingress.DemoUpstream
	for _, p := range d.providers {
		state, requests := p.faults.now()
		all = append(all, ingress.DemoUpstream{ID: p.id, State: state, Requests: requests})
	}
	return all
}

// Put breaks or heals a provider. It is false when there is no such provider or state.
func (d *Demo) Put(upstream, state string) bool {
	for _, p := range d.providers {
		if p.id == upstream {
			return p.faults.put(state)
		}
	}
	return false
}

// address is where a provider listens.
func (p *provider) address() net.Addr { return p.server.Addr() }

package webui

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/demo"
	"hydrallm/services/hydrallm/internal/gateway"
	"hydrallm/services/hydrallm/internal/gatewaytest"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

const demoKey = "demo" // as the configuration of the demo has it

// shown opens the page of a demo.
func shown(t *testing.T) *visit {
	t.Helper()
	d, err := demo.Start(t.Context())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
		defer cancel()
		require.NoError(t, d.Stop(ctx))
	})
	require.NoError(t, err)
	settings, err := d.Settings(t.TempDir(), freeport.Port(t))
	require.NoError(t, err)
	gatewaytest.Serve(t, func(ctx context.Context, added lifecycle.Named) error {
		return gateway.RunDemo(ctx, settings, slog.New(slog.DiscardHandler), d, added)
	})
	v := stranger(t, "http://"+settings.Server.Bind()+"/")
	v.eval(`() => localStorage.setItem('hydrallm.onboarding-skipped', '1')`)
	v.visit("ui/#/demo")
	v.enter(demoKey)
	v.see("h1", "Demo")
	v.see("[data-upstream=alpha][data-now=healthy]", "alpha")
	return v
}

// play plays a scene to its end.
func (v *visit) play(scene string) {
	v.t.Helper()
	v.click("[data-test=play-" + scene + "]")
	v.until(`(scene) => ['done', 'error'].includes(document.querySelector('[data-test=steps-' + scene + ']').dataset.state)`, scene)
	if !v.holds(`(scene) => document.querySelector('[data-test=steps-' + scene + ']').dataset.state === 'done'`, scene) {
		v.fail("the scene %s does not work", scene)
	}
}

// each scene of the demo shows what it promises, through the whole gateway.
func TestDemoScenes(t *testing.T) {
	t.Parallel()
	v := shown(t)
	v.size(1180, 900)
	v.play("failover")
	v.see("[data-test=steps-failover] [data-answered=beta]", "beta answered at attempt")
	v.see("[data-upstream=alpha][data-now=broken]", "")
	v.play("rests")
	v.see("[data-test=steps-rests]", "keys of alpha rest now")
	v.see("[data-test=steps-rests] [data-answered=beta]", "")
	v.see("[data-upstream=alpha][data-now=limited] .key.rest", "")
	if *screenshots != "" { // docs/demo.png
		var end int
		require.NoError(t, json.Unmarshal(v.eval(`() => { scrollTo(0, 0); return Math.ceil(document.querySelector('[data-scene=rests]').getBoundingClientRect().bottom); }`), &end))
		v.size(1180, end+8)
		v.inSight("demo")
	}
	v.play("session")
	v.see("[data-test=steps-session] [data-answered=alpha]", "alpha")
	v.see("[data-test=steps-session] [data-answered=beta]", "beta")
	v.see("[data-test=steps-session]", "You told me: My boat is called Marlin.")
	v.play("web")
	v.see("[data-test=steps-web] blockquote", "LED of 90 watts")
}

// buttons break, slow down, limit and heal a provider.
func TestDemoSwitches(t *testing.T) {
	t.Parallel()
	v := shown(t)
	for _, state := range []string{"broken", "slow", "limited", "healthy"} {
		v.click("[data-upstream=alpha] [data-choice=" + state + "]")
		v.see("[data-upstream=alpha][data-now="+state+"]", "alpha")
		v.until(`(state) => document.querySelector('[data-upstream=alpha] [data-choice=' + state + ']').getAttribute('aria-pressed') === 'true'`, state)
	}
	v.see("[data-upstream=beta][data-now=healthy]", "")
}

// a gateway that is no demo has neither the page nor the route.
func TestNoDemo(t *testing.T) {
	t.Parallel()
	x := serve(t, model(fakellm.Start(t)))
	status, _ := x.do(t, http.MethodGet, "/v1/admin/demo", nil)
	require.Equal(t, http.StatusNotFound, status)
	v := operator(t, x.url+"/")
	require.True(t, v.holds(`() => !document.querySelector('[data-section=demo]')`))
}

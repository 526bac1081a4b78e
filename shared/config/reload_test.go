package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
)

const reloaded = `
server: {locale: en, port: 8100}
providers: [{id: a, url: "http://h/v1", keys: [k1, k2]}, {id: b, url: "http://h/v1", key: k3}]
upstreams: [{id: u, provider: a, model: x}, {id: v, provider: b, model: y}]
models: [{name: m, upstreams: [u]}]
routing: {priority: [a, b], aliases: {old: m}}
sessions: {retention_days: 3}
`

// what can be taken over is, the rest is named, and the configuration before is as it was.
func TestReload(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change           []string // pairs of old and new text
		applied, restart []string
		check            func(t *testing.T, now *config.Config)
	}{
		"nothing": {},
		"live settings": {
			change: []string{"locale: en", "locale: ko", "retention_days: 3", "retention_days: 4"}, applied: []string{"server.locale", "sessions.retention_days"},
			check: func(t *testing.T, now *config.Config) {
				t.Helper()
				require.Equal(t, "ko", now.Server.Locale)
				require.Equal(t, 4, now.Sessions.RetentionDays)
			},
		},
		"what needs a restart": {
			change: []string{"port: 8100", "port: 8101", "locale: en", "locale: ko, host: 127.0.0.1, admin_key: secret"}, applied: []string{"server.locale"},
			restart: []string{"server.host", "server.port", "server.admin_key"},
			check: func(t *testing.T, now *config.Config) {
				t.Helper()
				require.Equal(t, 8100, now.Server.Port)
				require.Empty(t, now.Server.AdminKey)
			},
		},
		"routing": {
			change: []string{"[a, b], aliases: {old: m}", "[b], aliases: {new: m}, large: b"}, applied: []string{"routing.priority", "routing.large", "routing.aliases"},
		},
		"keys, upstreams and models": {
			change:  []string{"[k1, k2]", "[k2, k4]", "key: k3", "key: k5", "model: x", "model: z", "[{name: m, upstreams: [u]}]", "[{name: n, upstreams: [u, v]}]", "old: m", "old: n"},
			applied: []string{"routing.aliases", "providers.a.keys", "providers.b.keys", "upstreams.u", "models.n", "models.m"},
			check: func(t *testing.T, now *config.Config) {
				t.Helper()
				u, _ := now.Upstream("u")
				require.Equal(t, "z", u.Model)
				_, gone := now.Model("m")
				require.False(t, gone)
				_, there := now.Model("n")
				require.True(t, there)
				a, _ := now.Provider("a")
				require.Equal(t, "k4", a.Keys[1].Value.Reveal())
			},
		},
		"providers": {
			change: []string{`{id: b, url: "http://h/v1", key: k3}`, `{id: b, url: "http://other/v1", key: k3}`, "[k1, k2]", "[k1]", "model: x", "model: z", "locale: en", "locale: ko"},
			// The keys of a provider are a matter of all of them then.
			applied: []string{"server.locale"}, restart: []string{"providers", "upstreams.u"},
			check: func(t *testing.T, now *config.Config) {
				t.Helper()
				a, _ := now.Provider("a")
				require.Len(t, a.Keys, 2)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := configtest.Parse(t, reloaded)
			next := configtest.Parse(t, strings.NewReplacer(tt.change...).Replace(reloaded))
			now, applied, restart := before.Reload(next)
			require.Equal(t, tt.applied, applied)
			require.Equal(t, tt.restart, restart)
			require.Equal(t, configtest.Parse(t, reloaded), before)
			if tt.check != nil {
				tt.check(t, now)
			}
			_, again, still := now.Reload(next)
			require.Empty(t, again, "it is taken over")
			require.Equal(t, restart, still)
		})
	}
}

package config_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
)

func valuesOf(c *config.Config) map[string]config.LiveSetting {
	all := map[string]config.LiveSetting{}
	for _, s := range c.Live() {
		all[s.Name] = s
	}
	return all
}

// what is stored takes the place of what the file says, for live settings only, and each tells where it comes from.
func TestLiveSettings(t *testing.T) {
	t.Parallel()
	c := configtest.Parse(t, `
server: {locale: ko}
providers: [{id: a, url: "http://h/v1", keys: [x]}, {id: b, url: "http://h/v1", keys: [y]}]
routing: {priority: [b]}
sessions: {retention_days: 7}
`)
	before := valuesOf(c)
	require.Equal(t, config.LiveSetting{Name: "server.locale", Value: "ko", Origin: config.FromFile}, before["server.locale"])
	require.Equal(t, config.LiveSetting{Name: "log.communication", Value: false, Origin: config.ByDefault}, before["log.communication"])
	require.Equal(t, []string{"b"}, before["routing.priority"].Value)
	require.Equal(t, []string{}, before["server.enabled_models"].Value)

	next, wrong := c.With(map[string]json.RawMessage{
		"server.locale": json.RawMessage(`"en"`), "log.communication": json.RawMessage(`true`), "routing.max_tokens_fast_model": json.RawMessage(`100`),
		"routing.priority": json.RawMessage(`[]`), "server.enabled_models": json.RawMessage(`["${HOME}","a/x"]`), "log.level": json.RawMessage(`"debug"`),
	})
	require.Empty(t, wrong)
	require.Equal(t, "en", next.Server.Locale)
	require.True(t, next.Log.Communication)
	require.Equal(t, "debug", next.Log.Level)
	require.Equal(t, 100, next.Routing.MaxTokensFast)
	require.Equal(t, []string{"a", "b"}, next.Routing.Priority, "as if it were not given")
	require.Equal(t, []string{"${HOME}", "a/x"}, next.Server.Enabled, "nothing is replaced")
	require.Equal(t, config.FromStore, valuesOf(next)["server.locale"].Origin)
	require.Equal(t, config.FromFile, valuesOf(next)["sessions.retention_days"].Origin)
	require.Equal(t, before, valuesOf(c), "the one before is as it was")
	_, ok := next.Provider("a")
	require.True(t, ok)
}

// what is no live setting, or no value for one, changes nothing.
func TestValuesThatAreNotTaken(t *testing.T) {
	t.Parallel()
	c := configtest.Parse(t, "providers: []")
	for name, text := range map[string]string{
		"server.locale": `"fr"`, "log.communication": `"true"`, "routing.max_tokens_fast_model": `0`, "routing.priority": `"a"`, "log.level": `null`,
		"sessions.retention_days": `366`, "sessions.max_sessions": `1.5`, "server.enabled_models": `[1]`,
		"server.admin_key": `"x"`, "server.port": `1`, "nats.url": `"nats://h"`, "locale": `"en"`, "": `1`, "providers": `[]`, "server": `{}`,
	} {
		next, wrong := c.With(map[string]json.RawMessage{name: json.RawMessage(text)})
		require.Len(t, wrong, 1, name)
		require.Equal(t, c.Live(), next.Live(), name)
	}
	for _, list := range []string{`[null]`, `["a",null]`, `[["a"]]`, `[{}]`} {
		_, wrong := c.With(map[string]json.RawMessage{"server.enabled_models": json.RawMessage(list)})
		require.Len(t, wrong, 1, list)
	}
	next, wrong := c.With(map[string]json.RawMessage{"server.locale": json.RawMessage(`"ko"`), "server.port": json.RawMessage(`1`)})
	require.Len(t, wrong, 1)
	require.Equal(t, "ko", next.Server.Locale, "the others count")
}

// Every live setting can be read and written back.
func TestLiveSettingsComeBack(t *testing.T) {
	t.Parallel()
	c := configtest.Parse(t, "providers: []")
	require.NotEmpty(t, c.Live())
	next := stored(t, c)
	for _, s := range next.Live() {
		require.Equal(t, config.FromStore, s.Origin)
		require.Equal(t, valuesOf(c)[s.Name].Value, s.Value)
	}
}

// stored is the configuration with all its live settings stored as they are.
func stored(t *testing.T, c *config.Config) *config.Config {
	t.Helper()
	values := map[string]json.RawMessage{}
	for _, s := range c.Live() {
		text, err := json.Marshal(s.Value)
		require.NoError(t, err)
		values[s.Name] = text
	}
	next, wrong := c.With(values)
	require.Empty(t, wrong)
	return next
}

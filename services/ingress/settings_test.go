package ingress_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/ingress"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/fault"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/query"
	"hydrallm/shared/settings"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
)

// settled is an ingress whose settings may change; a change is stored in the bucket, as the session writer does.
func settled(t *testing.T, file string, more ...func(*ingress.Config)) *gateway {
	t.Helper()
	server := natstest.Start(t)
	view := settings.New(configtest.Parse(t, file), slog.New(slog.DiscardHandler))
	require.NoError(t, view.Follow(t.Context(), bustest.Connect(t, server)))
	t.Cleanup(view.Stop)
	g := setupOn(t, server, func(c *ingress.Config) {
		*c = ingress.FromGateway(view.Config())
		c.ID, c.Addr, c.AdminKey, c.Settings = "ingress-test", "127.0.0.1:0", adminKey, view
		for _, change := range more {
			change(c)
		}
	})
	h, stored := query.Handlers{}, map[string]query.Document{}
	query.PutSettings.Handle(h, func(ctx context.Context, q query.ChangedSettings) (answer query.SettingsStored, err error) {
		for name, value := range q.Set {
			if value == `"unstorable"` {
				return answer, fault.New(fault.Unavailable, "The database can't be had")
			}
			stored[name] = value
		}
		for _, name := range q.Clear {
			delete(stored, name)
		}
		text, err := json.Marshal(stored)
		if err != nil {
			return answer, err
		}
		bucket, err := g.worker.Bucket(ctx, subject.SettingsBucket)
		if err != nil {
			return answer, err
		}
		answer.Status = query.Success
		answer.Revision, err = bucket.Put(ctx, settings.Key, text)
		return answer, err
	})
	g.answers(query.SessionWriter, h)
	return g
}

func (g *gateway) admin(method, path, body string) answer {
	g.t.Helper()
	return g.do(method, "/v1/admin/"+path, strings.NewReader(body), "X-Admin-Key", adminKey)
}

// what is changed is shown at once, with where it comes from, and can be taken back.
func TestSettings(t *testing.T) {
	t.Parallel()
	g := settled(t, "server: {locale: ko}\nproviders: [{id: b, url: \"http://127.0.0.1:1/v1\"}, {id: a, url: \"http://127.0.0.1:1/v1\"}]")
	a := g.admin(http.MethodGet, "settings", "")
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	for path, want := range map[string]string{
		"session_retention_days": "30", "max_tokens_fast_model": "8192", "provider_priority": `["b","a"]`, "locale": `"ko"`, "debug_comm_log": "false",
		`settings.#(name=="server.locale")`:     `{"name":"server.locale","value":"ko","origin":"file"}`,
		`settings.#(name=="log.communication")`: `{"name":"log.communication","value":false,"origin":"default"}`,
	} {
		require.Equal(t, want, gjson.Get(a.body, path).Raw, path)
	}

	a = g.admin(http.MethodPut, "settings", `{"locale":"en","debug_comm_log":true,"routing.max_tokens_fast_model":100}`)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.JSONEq(t, `{"status":"success","changed":{"locale":"en","debug_comm_log":true,"routing.max_tokens_fast_model":100}}`, a.body)
	a = g.admin(http.MethodGet, "settings", "")
	require.Equal(t, "en", gjson.Get(a.body, "locale").Str)
	require.Equal(t, "stored", gjson.Get(a.body, `settings.#(name=="server.locale").origin`).Str)
	require.Equal(t, int64(100), gjson.Get(a.body, "max_tokens_fast_model").Int())

	a = g.admin(http.MethodPut, "settings", `{"locale":null}`)
	require.JSONEq(t, `{"status":"success","changed":{"locale":"ko"}}`, a.body)
	require.True(t, gjson.Get(g.admin(http.MethodGet, "settings", "").body, "debug_comm_log").Bool(), "the others stay")
}

// one wrong value, or one that may not be changed, and nothing changes.
func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	g := settled(t, "server: {locale: ko}")
	for _, body := range []string{
		`{"locale":"fr"}`, `{"locale":["en"]}`, `{"debug_comm_log":"perhaps"}`, `{"debug_comm_log":1}`, `{"locale":"en","debug_comm_log":"true"}`,
		`{"locale":"en","max_tokens_fast_model":1}`, `{"locale":"en","session_retention_days":2}`, `{"locale":"en","admin_key":"x"}`, `{"locale":"en","server.port":1}`,
		`{"locale":"en","server.locale":"en"}`, `{"locale":"en","server.port":null}`, `{"locale":"en","":null}`, `{broken`, `[]`, `null`, `"en"`,
		`{"locale":"` + strings.Repeat("x", 300<<10) + `"}`,
	} {
		a := g.admin(http.MethodPut, "settings", body)
		require.Contains(t, []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge}, a.StatusCode, "%.80s", body)
	}
	require.Equal(t, "ko", gjson.Get(g.admin(http.MethodGet, "settings", "").body, "locale").Str)
}

// discovered models are listed that somebody has chosen; what is configured, and what leaves the choice to the gateway, is listed in any case.
func TestOnboarding(t *testing.T) {
	t.Parallel()
	g := settled(t, `
providers: [{id: groq, url: "http://127.0.0.1:1/v1", keys: [k]}]
upstreams: [{id: u, provider: groq, model: x}]
models: [{name: m, upstreams: [u]}]
`)
	require.NoError(t, modelindex.Put(t.Context(), g.worker, modelindex.Listing{Provider: "groq", Models: []modelindex.Model{{ID: "one"}, {ID: "two"}}}))
	await.True(t, func() bool { return strings.Contains(g.do(http.MethodGet, "/v1/models", nil).body, "groq/two") })
	list := func() string {
		return gjson.Get(g.do(http.MethodGet, "/v1/models", nil).body, "data.#.id").Raw
	}
	require.JSONEq(t, `{"completed":false,"enabled_models":[],"available_models":["groq/one","groq/two"]}`, g.admin(http.MethodGet, "onboarding", "").body)
	for _, body := range []string{``, `{}`, `{"enabled_models":null}`, `{"enabled_models":"groq/one"}`, `{"enabled_models":[5]}`, `{"enabled_models":["groq/one",null,{}]}`, `[`} {
		requireError(t, g.admin(http.MethodPost, "onboarding", body), http.StatusBadRequest)
	}
	a := g.admin(http.MethodPost, "onboarding", `{"enabled_models":["groq/one"," groq/one ",""]}`)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.JSONEq(t, `{"status":"success","enabled_models":["groq/one"]}`, a.body)
	require.JSONEq(t, `["m","auto","groq/auto","groq/one"]`, list())
	require.JSONEq(t, `{"completed":true,"enabled_models":["groq/one"],"available_models":["groq/one","groq/two"]}`, g.admin(http.MethodGet, "onboarding", "").body)

	a = g.admin(http.MethodPost, "onboarding", `{"enabled_models":[]}`)
	require.JSONEq(t, `{"status":"success","enabled_models":[]}`, a.body)
	require.JSONEq(t, `["m","auto","groq/auto","groq/one","groq/two"]`, list())
}

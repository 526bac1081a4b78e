package ingress_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/ingress"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
)

const clientKeysPath = "/v1/admin/client-keys"

// madeKey is what a client key is made of, and its secret.
type madeKey struct{ ID, Key string }

func (k madeKey) header() []string { return []string{"Authorization", "Bearer " + k.Key} }

// makeKey makes a client key; members are those of its body beside the name.
func (g *gateway) makeKey(name string, members ...string) madeKey {
	g.t.Helper()
	body := fmt.Sprintf(`{"name":%q%s}`, name, strings.Join(append([]string{""}, members...), ","))
	a := g.post(clientKeysPath, body)
	require.Equal(g.t, http.StatusOK, a.StatusCode, a.body)
	var k madeKey
	require.NoError(g.t, json.Unmarshal([]byte(a.body), &k))
	require.True(g.t, strings.HasPrefix(k.Key, "hk-"))
	require.Len(g.t, k.Key, len("hk-")+43)
	return k
}

// two starts two ingresses on one server, whose requests echo answers.
func two(t *testing.T, change func(*ingress.Config)) (g, other *gateway) {
	t.Helper()
	return twoFor(t, change, echo)
}

func twoFor(t *testing.T, change func(*ingress.Config), handler func(context.Context, *reply)) (g, other *gateway) {
	t.Helper()
	server := natstest.Start(t)
	for i, at := range []**gateway{&g, &other} {
		*at = setupOn(t, server, func(c *ingress.Config) {
			withAdmin(c)
			c.ID = fmt.Sprintf("ingress-%d", i)
			if change != nil {
				change(c)
			}
		})
	}
	g.work(handler)
	return g, other
}

// a key counts on every ingress as soon as it is made, and on none once it is revoked; then the gateway does not stand open.
func TestNamedKeys(t *testing.T) {
	t.Parallel()
	g, other := two(t, nil)
	require.Equal(t, http.StatusOK, g.chat(chatBody).StatusCode, "without keys everybody may")
	require.JSONEq(t, `[]`, g.do(http.MethodGet, clientKeysPath, nil, "X-Admin-Key", adminKey).body)

	k := g.makeKey("laptop")
	await.True(t, func() bool { return other.chat(chatBody).StatusCode == http.StatusUnauthorized }, "the other ingress knows the key")
	for _, g := range []*gateway{g, other} {
		requireError(t, g.chat(chatBody), http.StatusUnauthorized)
		require.Equal(t, http.StatusOK, g.chat(chatBody, k.header()...).StatusCode)
		require.Equal(t, http.StatusOK, g.chat(chatBody, "X-Api-Key", k.Key).StatusCode)
		require.Equal(t, http.StatusOK, g.chat(chatBody, "X-Api-Key", adminKey).StatusCode)
		requireError(t, g.chat(chatBody, "X-Api-Key", k.Key[:len(k.Key)-1]), http.StatusUnauthorized)
		list := g.do(http.MethodGet, clientKeysPath, nil, "X-Admin-Key", adminKey)
		require.Equal(t, k.ID, gjson.Get(list.body, "0.id").String())
		require.NotContains(t, list.body, k.Key[3:], "R-333")
		requireError(t, g.do(http.MethodGet, clientKeysPath, nil, k.header()...), http.StatusUnauthorized)
	}

	turned := madeKey{ID: k.ID, Key: gjson.Get(other.post(clientKeysPath+"/"+k.ID+"/rotate", "").body, "key").String()}
	require.Equal(t, http.StatusOK, other.chat(chatBody, turned.header()...).StatusCode)
	requireError(t, other.chat(chatBody, k.header()...), http.StatusUnauthorized)
	await.True(t, func() bool { return g.chat(chatBody, turned.header()...).StatusCode == http.StatusOK }, "the first ingress knows the new secret")

	a := g.do(http.MethodDelete, clientKeysPath+"/"+k.ID, nil, "X-Admin-Key", adminKey)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.True(t, gjson.Get(a.body, "revoked").Bool())
	_, code := requireError(t, g.chat(chatBody, turned.header()...), http.StatusUnauthorized)
	require.Equal(t, "key_revoked", code)
	await.True(t, func() bool { return other.chat(chatBody, turned.header()...).StatusCode == http.StatusUnauthorized }, "the other ingress refuses it")
	requireError(t, g.chat(chatBody), http.StatusUnauthorized)
	requireError(t, g.post(clientKeysPath+"/"+k.ID+"/rotate", ""), http.StatusConflict)

	late := setupOn(t, g.nats, func(c *ingress.Config) { withAdmin(c); c.ID = "ingress-late" })
	requireError(t, late.chat(chatBody), http.StatusUnauthorized)
	for _, g := range []*gateway{g, other, late} {
		require.NotContains(t, g.log.String(), k.Key[3:])
		require.NotContains(t, g.log.String(), turned.Key[3:])
	}
}

// a key that is changed is the same key, and what its members may be.
func TestChangingAKey(t *testing.T) {
	t.Parallel()
	g, _ := two(t, nil)
	k := g.makeKey("laptop", `"allowed_models":["m"]`, `"limits":{"rpm":7,"tpm":1000}`, `"budget":{"amount":1.5,"unit":"money","period":"month"}`,
		`"expires_at":"2999-01-02T03:04:05+01:00"`)
	patch := func(id, body string) answer {
		return g.do(http.MethodPatch, clientKeysPath+"/"+id, strings.NewReader(body), "X-Admin-Key", adminKey)
	}
	a := patch(k.ID, `{"name":" desk ","limits":{"rpm":9},"budget":null}`)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	created := gjson.Get(a.body, "created_at").String()
	require.JSONEq(t, `{"id":"`+k.ID+`","name":"desk","allowed_models":["m"],"limits":{"rpm":9},"budget":null,"expires_at":"2999-01-02T02:04:05Z","created_at":"`+
		created+`","revoked":false,"last_used":null}`, a.body)
	require.Equal(t, http.StatusOK, g.chat(chatBody, k.header()...).StatusCode)

	g.makeKey("other")
	for _, body := range []string{
		`{"name":""}`, `{"name":"   "}`, `{"name":null}`, `{"name":1}`, `{"name":"a\u0000"}`, `{"name":"` + strings.Repeat("n", 65) + `"}`, `{"allowed_models":"m"}`,
		`{"allowed_models":[""]}`, `{"allowed_models":[1]}`, `{"limits":{"rpm":-1}}`, `{"limits":{"rpm":1.5}}`, `{"limits":{"rps":1}}`, `{"limits":7}`, `{"limits":{"tpm":1e300}}`, `{"limits":{"rpm":0}}`, `{"limits":{"rpm":9,"tpm":0}}`,
		`{"budget":{"amount":0,"unit":"tokens","period":"day"}}`, `{"budget":{"amount":1,"unit":"tokens"}}`, `{"budget":{"amount":1,"unit":"euro","period":"day"}}`,
		`{"budget":{"amount":1.5,"unit":"tokens","period":"day"}}`, `{"budget":{"amount":-1,"unit":"money","period":"day"}}`, `{"expires_at":"tomorrow"}`,
		`{"expires_at":"2001-01-01T00:00:00Z"}`, `{"id":"ck_other"}`, `{"revoked":false}`, `{"hash":""}`, `[]`, `{`, `null`,
	} {
		requireError(t, patch(k.ID, body), http.StatusBadRequest)
		requireError(t, g.post(clientKeysPath, strings.Replace(body, "{", `{"name":"new",`, 1)), http.StatusBadRequest)
	}
	requireError(t, patch(k.ID, `{"name":"other"}`), http.StatusConflict)
	requireError(t, g.post(clientKeysPath, `{"name":"other"}`), http.StatusConflict)
	for _, id := range []string{"ck_none", "none", "ck_", "ck_*", "ck_a.b", strings.Repeat("x", 500)} {
		requireError(t, patch(id, `{"name":"x"}`), http.StatusNotFound)
		requireError(t, g.do(http.MethodDelete, clientKeysPath+"/"+id, nil, "X-Admin-Key", adminKey), http.StatusNotFound)
		requireError(t, g.post(clientKeysPath+"/"+id+"/rotate", ""), http.StatusNotFound)
	}
	require.Equal(t, "desk", gjson.Get(patch(k.ID, `{}`).body, "name").String(), "what was refused has changed nothing")
}

// a key asks for its models, and sees no others.
func TestAllowedModels(t *testing.T) {
	t.Parallel()
	g, _ := two(t, func(c *ingress.Config) {
		c.Models = []ingress.Model{{ID: "m"}, {ID: "n"}, {ID: "vendor/a"}, {ID: "vendor/b"}}
	})
	some, all := g.makeKey("some", `"allowed_models":["m","vendor/*"]`), g.makeKey("all")
	g.answer("dispatcher", echo)
	ids := func(k madeKey, header ...string) (ids []string) {
		a := g.do(http.MethodGet, "/v1/models", nil, append(k.header(), header...)...)
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		for _, id := range gjson.Get(a.body, "data.#.id").Array() {
			ids = append(ids, id.String())
		}
		return ids
	}
	anthropic := []string{"Anthropic-Version", "2023-06-01"}
	require.Equal(t, []string{"m", "n", "vendor/a", "vendor/b"}, ids(all))
	require.Equal(t, []string{"m", "vendor/a", "vendor/b"}, ids(some))
	require.Equal(t, []string{"m", "vendor/a", "vendor/b"}, ids(some, anthropic...))
	for model, want := range map[string]int{"m": http.StatusOK, "vendor/a": http.StatusOK, "vendor/else": http.StatusOK, "n": http.StatusForbidden, "M": http.StatusForbidden, "vendor": http.StatusForbidden} {
		a := g.chat(strings.Replace(chatBody, `"m"`, `"`+model+`"`, 1), some.header()...)
		require.Equal(t, want, a.StatusCode, model)
		if want != http.StatusOK {
			_, code := requireError(t, a, want)
			require.Equal(t, "model_not_allowed", code)
		}
	}
	const unnamed = `{"messages":[{"role":"user","content":"hi"}]}` // which is a request for auto
	message, _ := requireError(t, g.chat(unnamed, some.header()...), http.StatusForbidden)
	require.Contains(t, message, "`auto`")
	automatic := g.makeKey("automatic", `"allowed_models":["auto"]`)
	require.NotEqual(t, http.StatusForbidden, g.chat(unnamed, automatic.header()...).StatusCode)
	requireError(t, g.do(http.MethodGet, "/v1/models/n", nil, some.header()...), http.StatusNotFound)
	require.Equal(t, http.StatusOK, g.do(http.MethodGet, "/v1/models/vendor/a", nil, some.header()...).StatusCode)
	a := g.do(http.MethodPost, "/v1/messages", strings.NewReader(`{"model":"n","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`), some.header()...)
	require.Equal(t, http.StatusForbidden, a.StatusCode)
	require.Equal(t, "permission_error", gjson.Get(a.body, "error.type").String())
}

// a thousand keys are listed and looked up as one is.
func TestThousandKeys(t *testing.T) {
	t.Parallel()
	g, other := two(t, nil)
	var last madeKey
	for i := range 1000 {
		last = g.makeKey(fmt.Sprint("key ", i))
	}
	list := g.do(http.MethodGet, clientKeysPath, nil, "X-Admin-Key", adminKey)
	require.Len(t, gjson.Parse(list.body).Array(), 1000)
	await.True(t, func() bool { return other.chat(chatBody, last.header()...).StatusCode == http.StatusOK }, "the other ingress knows all keys")
}

// a key ends when its time is over, and can still be changed. What can't be read is no reason to let everybody in.
func TestExpiry(t *testing.T) {
	t.Parallel()
	g, _ := two(t, nil)
	bucket, err := g.worker.Bucket(t.Context(), subject.ClientKeysBucket)
	require.NoError(t, err)
	_, err = bucket.Put(t.Context(), "ck_broken", []byte("{"))
	require.NoError(t, err)
	await.True(t, func() bool { return g.chat(chatBody).StatusCode == http.StatusUnauthorized }, "the gateway is closed")
	k := madeKey{ID: "ck_old", Key: "hk-old"}
	sum := sha256.Sum256([]byte(k.Key))
	record, err := json.Marshal(map[string]any{"id": k.ID, "name": "old", "hash": sum[:], "created_at": time.Unix(0, 0), "expires_at": time.Unix(1, 0)})
	require.NoError(t, err)
	_, err = bucket.Put(t.Context(), k.ID, record)
	require.NoError(t, err)
	await.True(t, func() bool { return strings.Contains(g.chat(chatBody, k.header()...).body, "key_expired") }, "the key has expired")
	patch := func(body string) answer {
		return g.do(http.MethodPatch, clientKeysPath+"/"+k.ID, strings.NewReader(body), "X-Admin-Key", adminKey)
	}
	a := patch(`{"name":"still there"}`)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	requireError(t, g.chat(chatBody, k.header()...), http.StatusUnauthorized)
	require.Equal(t, http.StatusOK, patch(`{"expires_at":null}`).StatusCode)
	require.Equal(t, http.StatusOK, g.chat(chatBody, k.header()...).StatusCode)
}

// what was used is shown with the name that the key has now; text that only looks like it stays as it is.
func TestNamesOfClients(t *testing.T) {
	t.Parallel()
	g, _ := two(t, nil)
	k := g.makeKey(`a "quoted" name`)
	lookalike := `"text":"\"principal\":\"` + k.ID + `\""`
	stats := `{"clients":[{"principal":"` + k.ID + `","total":1.0},{"principal":"anonymous"},{"principal":"ck_unknown"}],` + lookalike + `}`
	questions := serve(t, g, query.SessionWriter, map[string]string{"stats": stats, "logs": "[]", "calls": `[{"principal":"` + k.ID + `"}]`})
	shown := func(path string) string {
		a := g.do(http.MethodGet, "/v1/admin/"+path, nil, "X-Admin-Key", adminKey)
		<-questions
		require.True(t, json.Valid([]byte(a.body)), a.body)
		return a.body
	}
	name := `,"client_name":"a \"quoted\" name"`
	require.Equal(t, strings.Replace(stats, `","total"`, `"`+name+`,"total"`, 1), shown("stats"))
	require.Equal(t, `[{"principal":"`+k.ID+`"`+name+`}]`, shown("calls"))
	require.Equal(t, `a "quoted" name`, gjson.Get(shown("dashboard"), "clients.0.client_name").String())
}

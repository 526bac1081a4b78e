package ingress_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/seal"
	"hydrallm/shared/testkit/await"
)

// asked is a query that a dispatcher got.
type asked struct {
	op   string
	data []byte
}

// dispatch answers the queries of a dispatcher.
func dispatch(t *testing.T, g *gateway, answer func(asked) ([]byte, error), ops ...string) <-chan asked {
	t.Helper()
	return serveAsked(t, g, query.Dispatcher, answer, ops...)
}

// serveAsked answers the queries of a service.
func serveAsked(t *testing.T, g *gateway, service string, answer func(asked) ([]byte, error), ops ...string) <-chan asked {
	t.Helper()
	questions := make(chan asked, 16)
	handlers := query.Handlers{}
	for _, op := range ops {
		handlers[op] = func(_ context.Context, data []byte) ([]byte, error) {
			q := asked{op, data}
			questions <- q
			return answer(q)
		}
	}
	g.answers(service, handlers)
	return questions
}

func withAdmin(c *ingress.Config) { c.AdminKey = adminKey }

func (g *gateway) post(path, body string) answer {
	g.t.Helper()
	return g.do(http.MethodPost, path, strings.NewReader(body), "X-Admin-Key", adminKey)
}

// keys travel sealed, and only those that are some.
func TestAddKeys(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	questions := dispatch(t, g, func(asked) ([]byte, error) { return []byte(`{"status":"success","added_count":2}`), nil }, "add_keys")
	const first, second = "Provider-Key-aaaaaaaaaaaa", `Provider-Key-"bbbb`
	a := g.post("/v1/admin/keys", `{"keys":["`+first+`"," \t","","  Provider-Key-\u0022bbbb\n"],"note":{"x":1},"provider":" gemini "}`)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.Equal(t, `{"status":"success","added_count":2}`, a.body)
	q := await.Value(t, questions)
	require.NotContains(t, string(q.data), "Provider-Key")
	var question struct {
		Provider string
		Keys     [][]byte
	}
	require.NoError(t, json.Unmarshal(q.data, &question))
	require.Equal(t, "gemini", question.Provider)
	require.Len(t, question.Keys, 2)
	for i, want := range []string{first, second} {
		plain, err := seal.Open(adminKey, question.Keys[i], "gemini")
		require.NoError(t, err)
		require.Equal(t, want, string(plain))
	}
	a = g.post("/v1/admin/keys", `{"provider":"gemini","keys":[" "]}`)
	require.Equal(t, http.StatusOK, a.StatusCode, "the dispatcher knows whether the provider exists (B-32)")
	require.JSONEq(t, `{"provider":"gemini","keys":[]}`, string(await.Value(t, questions).data))
	require.NotContains(t, g.log.String(), "Provider-Key")
}

// As many keys as there may be, one of them as long as it may be.
func TestAddManyKeys(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	questions := dispatch(t, g, func(asked) ([]byte, error) { return []byte(`{"status":"success","added_count":1000}`), nil }, "add_keys")
	list := strings.Repeat(`"key",`, 999) + `"` + strings.Repeat("k", 4096) + `"`
	a := g.post("/v1/admin/keys", `{"provider":"p","keys":[`+list+`]}`)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	var question struct{ Keys [][]byte }
	require.NoError(t, json.Unmarshal(await.Value(t, questions).data, &question))
	require.Len(t, question.Keys, 1000)
	message, _ := requireError(t, g.post("/v1/admin/keys", `{"provider":"p","keys":[`+list+`,"k"]}`), http.StatusBadRequest)
	require.Contains(t, message, "1000")
	requireError(t, g.post("/v1/admin/keys", `{"provider":"p","keys":["`+strings.Repeat("k", 9<<20)+`"]}`), http.StatusRequestEntityTooLarge)
}

// whatever is wrong, the answer says it without a key.
func TestAddKeysRefuses(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin) // no dispatcher: what is accepted gets 503
	const secret = "Secret-Key-0123456789"
	tests := map[string]struct{ body, param string }{
		"empty":                {``, ""},
		"broken":               {`{"provider":"p","keys":["` + secret, ""},
		"broken behind a key":  {`{"provider":"p","keys":["` + secret + `"x]}`, ""},
		"array":                {`["` + secret + `"]`, ""},
		"string":               {`"` + secret + `"`, ""},
		"no provider":          {`{"keys":["` + secret + `"]}`, "provider"},
		"blank provider":       {`{"provider":" ","keys":["` + secret + `"]}`, "provider"},
		"provider is a number": {`{"provider":1,"keys":["` + secret + `"]}`, "provider"},
		"long provider":        {`{"provider":"` + strings.Repeat("p", 600) + `","keys":["` + secret + `"]}`, "provider"},
		"no keys":              {`{"provider":"p"}`, "keys"},
		"keys are null":        {`{"provider":"p","keys":null}`, "keys"},
		"keys are a string":    {`{"provider":"p","keys":"` + secret + `"}`, "keys"},
		"a key is a number":    {`{"provider":"p","keys":["` + secret + `",5]}`, "keys[1]"},
		"a key is an object":   {`{"provider":"p","keys":[{"value":"` + secret + `"}]}`, "keys[0]"},
		"a key is too long":    {`{"provider":"p","keys":["` + strings.Repeat(secret, 300) + `"]}`, "keys[0]"},
		"a line break inside":  {`{"provider":"p","keys":["` + secret + `\nX: y"]}`, "keys[0]"},
		"not ASCII":            {`{"provider":"p","keys":["` + secret + `한국"]}`, "keys[0]"},
		"two providers":        {`{"provider":"p","provider":"q","keys":["` + secret + `"]}`, "provider"},
		"two lists":            {`{"provider":"p","keys":["` + secret + `"],"keys":[]}`, "keys"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := g.post("/v1/admin/keys", tt.body)
			requireError(t, a, http.StatusBadRequest)
			require.NotContains(t, a.body, "Secret")
			if tt.param != "" {
				require.Contains(t, a.body, `"param":"`+tt.param+`"`)
			}
		})
	}
	requireError(t, g.post("/v1/admin/keys", `{"provider":"p","keys":["`+secret+`"]}`), http.StatusServiceUnavailable)
	requireError(t, g.do(http.MethodGet, "/v1/admin/keys", nil, "X-Admin-Key", adminKey), http.StatusMethodNotAllowed)
	require.NotContains(t, g.log.String(), "Secret-Key")
}

// B-32: the dispatcher knows its providers.
func TestAddKeysOfAnUnknownProvider(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	dispatch(t, g, func(asked) ([]byte, error) {
		return nil, &fault.Fault{Kind: fault.Invalid, Message: "there is no provider with a pool of that name", Param: "provider"}
	}, "add_keys")
	a := g.post("/v1/admin/keys", `{"provider":"nobody","keys":["k"]}`)
	message, _ := requireError(t, a, http.StatusBadRequest)
	require.Contains(t, message, "no provider")
	require.Contains(t, a.body, `"param":"provider"`)
}

// Without an admin key there is nothing to protect keys with, even in debug mode.
func TestAddKeysWithoutAnAdminKey(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.Debug = true })
	dispatch(t, g, func(asked) ([]byte, error) { return []byte(`{}`), nil }, "add_keys")
	message, code := requireError(t, g.do(http.MethodPost, "/v1/admin/keys", strings.NewReader(`{"provider":"p","keys":["k"]}`)), http.StatusServiceUnavailable)
	require.Equal(t, "admin_key_missing", code)
	require.Contains(t, message, "ADMIN_API_KEY")
}

//
func TestProbeAndRefresh(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	questions := dispatch(t, g, func(q asked) ([]byte, error) {
		if q.op == "probe" && strings.Contains(string(q.data), "true") {
			return nil, query.ErrProbing
		}
		return []byte(`{"status":"success"}`), nil
	}, "probe", "refresh_models")

	for _, body := range []string{"", `{"active":true}`, "{broken", strings.Repeat("x", 1<<20)} {
		a := g.post("/v1/admin/probe", body)
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		require.Equal(t, `{"status":"success"}`, a.body)
		require.JSONEq(t, `{"force":false}`, string(await.Value(t, questions).data))
	}
	a := g.post("/v1/admin/refresh-models", "")
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	q := await.Value(t, questions)
	require.Equal(t, "refresh_models", q.op)
	require.JSONEq(t, `{}`, string(q.data))

	for _, force := range []string{"true", "1"} {
		message, code := requireError(t, g.post("/v1/admin/probe?force="+force, ""), http.StatusConflict)
		require.Equal(t, query.ErrProbing.Message, message)
		require.Equal(t, "conflict", code)
		require.JSONEq(t, `{"force":true}`, string(await.Value(t, questions).data))
	}
	requireError(t, g.post("/v1/admin/probe?force=maybe", ""), http.StatusBadRequest)
	for _, path := range []string{"/v1/admin/probe", "/v1/admin/refresh-models"} {
		requireError(t, g.do(http.MethodGet, path, nil, "X-Admin-Key", adminKey), http.StatusMethodNotAllowed)
		requireError(t, g.do(http.MethodPost, path, nil), http.StatusUnauthorized)
	}
}

// a probe that takes its time does not hold up a stop beyond its limit.
func TestStopDuringAProbe(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	release := make(chan struct{})
	questions := dispatch(t, g, func(asked) ([]byte, error) { <-release; return []byte(`{}`), nil }, "probe")
	t.Cleanup(func() { close(release) }) // before the worker ends, which waits for its answers
	answers := make(chan answer, 1)
	go func() {
		a, err := g.try(t.Context(), http.MethodPost, "/v1/admin/probe", nil, "X-Admin-Key", adminKey)
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	await.Value(t, questions)
	_ = await.Value(t, g.stopping(200*time.Millisecond))
	requireError(t, await.Value(t, answers), http.StatusServiceUnavailable)
}

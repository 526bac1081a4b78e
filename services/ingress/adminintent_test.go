package ingress_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/await"
)

// keywordsOf answers the operations of an enricher on keywords.
func keywordsOf(t *testing.T, g *gateway, answer func(op string) ([]byte, error)) <-chan asked {
	t.Helper()
	return serveAsked(t, g, query.Enricher, func(q asked) ([]byte, error) { return answer(q.op) }, "keywords", "add_keywords", "learn_keywords")
}

// what the enricher is asked and what the operator gets.
func TestKeywordRoutes(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	questions := keywordsOf(t, g, func(op string) ([]byte, error) {
		return []byte(map[string]string{
			"keywords":       `{"ko":["물때"],"en":[]}`,
			"add_keywords":   `{"status":"success","lang":"en","added":["ferry tide"]}`,
			"learn_keywords": `{"status":"success","query":"what is the current tide","added":[]}`,
		}[op]), nil
	})
	a := g.do(http.MethodGet, "/v1/admin/intent/keywords", nil, "X-Admin-Key", adminKey)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.Equal(t, `{"ko":["물때"],"en":[]}`, a.body)
	await.Value(t, questions)

	a = g.post("/v1/admin/intent/keywords", `{"keywords":[" ferry tide ","\ubb3c\ub54c"],"lang":"en","more":1}`)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.JSONEq(t, `{"status":"success","lang":"en","added":["ferry tide"]}`, a.body)
	var add query.NewKeywords
	require.NoError(t, json.Unmarshal(await.Value(t, questions).data, &add))
	require.Equal(t, query.NewKeywords{Lang: "en", Keywords: []string{" ferry tide ", "물때"}}, add)

	a = g.post("/v1/admin/intent/keywords/learn", `{"query":"what is the current tide"}`)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.JSONEq(t, `{"status":"success","query":"what is the current tide","added":[]}`, a.body)
	var missed query.Missed
	require.NoError(t, json.Unmarshal(await.Value(t, questions).data, &missed))
	require.Equal(t, "what is the current tide", missed.Query)
}

// a request that makes no sense changes nothing.
func TestKeywordRoutesRefuse(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	questions := keywordsOf(t, g, func(string) ([]byte, error) { return []byte("{}"), nil })
	for path, all := range map[string][]string{
		"/v1/admin/intent/keywords": {
			"", "{", "[]", `{}`, `{"lang":"en"}`, `{"keywords":["a b"]}`, `{"lang":"en","keywords":"a b"}`, `{"lang":"en","keywords":["a b",5]}`,
			`{"lang":"en","keywords":[null]}`, `{"lang":5,"keywords":["a b"]}`, `{"lang":null,"keywords":["a b"]}`, `{"lang":"en","keywords":null}`,
			`{"lang":" ","keywords":["a b"]}`, `{"lang":"en","keywords":{"a":"b"}}`,
		},
		"/v1/admin/intent/keywords/learn": {"", "{", "[]", `{}`, `{"query":""}`, `{"query":" \n\t"}`, `{"query":5}`, `{"query":null}`, `{"query":["x"]}`},
	} {
		for _, body := range all {
			requireError(t, g.post(path, body), http.StatusBadRequest)
		}
	}
	require.Empty(t, questions)
}

// what the enricher refuses is the client's to mend; without an enricher it is a 503.
func TestKeywordRoutesPassOnFaults(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	requireError(t, g.do(http.MethodGet, "/v1/admin/intent/keywords", nil, "X-Admin-Key", adminKey), http.StatusServiceUnavailable)
	keywordsOf(t, g, func(string) ([]byte, error) {
		return nil, &fault.Fault{Kind: fault.Invalid, Message: "'lang' must be one of ko, en", Param: "lang"}
	})
	message, _ := requireError(t, g.post("/v1/admin/intent/keywords", `{"lang":"fr","keywords":["marée"]}`), http.StatusBadRequest)
	require.Contains(t, message, "'lang' must be one of ko, en")
}

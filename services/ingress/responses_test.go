package ingress_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/contract"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/await"
)

// what a request wants of stored responses is known before anything of it is read, and takes the stage of sessions.
func TestWhatResponsesWantOfStorage(t *testing.T) {
	t.Parallel()
	stores := setup(t, func(c *ingress.Config) {
		c.Models, c.Stages, c.Stores = []ingress.Model{{ID: "m"}}, []contract.Stage{session}, true
	})
	without := setup(t, func(c *ingress.Config) { c.Models, c.Stages = []ingress.Model{{ID: "m"}}, []contract.Stage{session} })
	direct, through := contract.Slip{enriched}, contract.Slip{session, enriched}
	fromStores, fromWithout := stores.envelopes(), without.envelopes()
	for name, tt := range map[string]struct {
		body  string
		slip  contract.Slip // nil = refused
		store bool
		param string
		plain bool // it works without storage too
	}{
		"store is the default": {`{"model":"m","input":"hi"}`, direct, true, "", true},
		"not to be stored":     {`{"model":"m","input":"hi","store":false}`, direct, false, "", true},
		"in a session":         {`{"model":"m","input":"hi","session_id":"s"}`, through, false, "", true},
		"going on":             {`{"model":"m","input":"hi","previous_response_id":"resp_1"}`, through, true, "previous_response_id", false},
		"going on, unstored":   {`{"model":"m","input":"hi","store":false,"previous_response_id":"resp_1"}`, through, false, "previous_response_id", false},
		"a reference":          {`{"model":"m","input":[{"type":"item_reference","id":"i"}]}`, through, true, "input", false},
		"two histories":        {`{"model":"m","input":"hi","session_id":"s","previous_response_id":"resp_1"}`, nil, false, "previous_response_id", false},
		"a long id":            {`{"model":"m","input":"hi","previous_response_id":"` + strings.Repeat("x", 600) + `"}`, nil, false, "previous_response_id", false},
	} {
		for _, g := range []struct {
			*gateway
			from   <-chan *contract.Request
			stores bool
		}{{stores, fromStores, true}, {without, fromWithout, false}} {
			a := g.do(http.MethodPost, "/v1/responses", strings.NewReader(tt.body))
			if tt.slip == nil || !g.stores && !tt.plain {
				require.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, a.StatusCode, name)
				require.Contains(t, a.body, `"param":"`+tt.param+`"`, name)
				continue
			}
			require.Equal(t, http.StatusOK, a.StatusCode, name)
			r := await.Value(t, g.from)
			require.Equal(t, tt.slip, r.Slip, name)
			require.Equal(t, tt.store && g.stores, r.Store, name)
		}
	}
}

// the routes of a stored response ask whoever stores it, in the name of the caller.
func TestStoredResponseRoutes(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	h := query.Handlers{}
	query.GetResponse.Handle(h, func(_ context.Context, q query.ResponseID) (query.Document, error) {
		return query.Document(`{"id":"` + q.ID + `","by":"` + q.Principal + `"}`), nil
	})
	query.DeleteResponse.Handle(h, func(_ context.Context, q query.ResponseID) (query.ResponseDeleted, error) {
		return query.ResponseDeleted{ID: q.ID, Object: "response", Deleted: true}, nil
	})
	asked := make(chan query.InputItems, 1)
	query.ListInputItems.Handle(h, func(_ context.Context, q query.InputItems) (query.ItemPage, error) {
		asked <- q
		return query.ItemPage{Object: "list", Data: []query.Document{"{}"}}, nil
	})
	g.answers(query.SessionWriter, h)

	a := g.do(http.MethodGet, "/v1/responses/resp_1?include[]=x", nil)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.JSONEq(t, `{"id":"resp_1","by":"anonymous"}`, a.body)
	a = g.do(http.MethodDelete, "/v1/responses/resp_1", nil)
	require.JSONEq(t, `{"id":"resp_1","object":"response","deleted":true}`, a.body)
	a = g.do(http.MethodGet, "/v1/responses/resp_1/input_items?limit=7&order=asc&after=i&include[]=x", nil)
	require.JSONEq(t, `{"object":"list","data":[{}],"first_id":null,"last_id":null,"has_more":false}`, a.body)
	require.Equal(t, query.InputItems{ResponseID: query.ResponseID{ID: "resp_1", Principal: "anonymous"}, After: "i", Limit: 7, Ascending: true}, <-asked)
	g.do(http.MethodGet, "/v1/responses/resp_1/input_items", nil)
	require.Equal(t, query.InputItems{ResponseID: query.ResponseID{ID: "resp_1", Principal: "anonymous"}, Limit: 20}, <-asked)

	for path, status := range map[string]int{
		"/v1/responses/resp_1/input_items?limit=0":   http.StatusBadRequest,
		"/v1/responses/resp_1/input_items?limit=101": http.StatusBadRequest,
		"/v1/responses/resp_1/input_items?limit=x":   http.StatusBadRequest,
		"/v1/responses/resp_1/input_items?order=up":  http.StatusBadRequest,
		"/v1/responses/resp_1?stream=true":           http.StatusBadRequest,
		"/v1/responses/resp_1/unknown":               http.StatusNotFound,
		"/v1/responses/" + strings.Repeat("x", 600):  http.StatusNotFound,
	} {
		requireError(t, g.do(http.MethodGet, path, nil), status)
	}
	requireError(t, g.do(http.MethodPut, "/v1/responses/resp_1", nil), http.StatusMethodNotAllowed)
}

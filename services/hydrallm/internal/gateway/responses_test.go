package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/config"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/pgtest"
)

func inputText(text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

// the official client makes, streams, chains, shows, lists and deletes responses.
func TestOpenAISDKResponses(t *testing.T) {
	t.Parallel()
	x := start(t)
	x.a.Handle(counting)
	c, ctx := x.sdk(t), t.Context()
	first, err := c.Responses.New(ctx, inputText("q1"))
	require.NoError(t, err)
	require.Equal(t, "1 messages, the last: q1", first.OutputText())
	require.Equal(t, responses.ResponseStatusCompleted, first.Status)

	params := inputText("q2")
	params.PreviousResponseID = openai.String(first.ID)
	events := c.Responses.NewStreaming(ctx, params)
	var second responses.Response
	var text strings.Builder
	for number := int64(0); events.Next(); number++ {
		e := events.Current()
		require.Equal(t, number, e.SequenceNumber)
		text.WriteString(e.AsResponseOutputTextDelta().Delta)
		if e.Type == "response.completed" {
			second = e.AsResponseCompleted().Response
		}
	}
	require.NoError(t, events.Err())
	require.Equal(t, "3 messages, the last: q2", text.String())
	require.Equal(t, text.String(), second.OutputText())

	got, err := c.Responses.Get(ctx, second.ID, responses.ResponseGetParams{})
	require.NoError(t, err)
	require.JSONEq(t, second.RawJSON(), got.RawJSON())
	items, err := c.Responses.InputItems.List(ctx, second.ID, responses.InputItemListParams{})
	require.NoError(t, err)
	require.Len(t, items.Data, 1)
	require.NoError(t, c.Responses.Delete(ctx, first.ID))
	_, err = c.Responses.Get(ctx, first.ID, responses.ResponseGetParams{})
	var refused *openai.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusNotFound, refused.StatusCode)
	params.PreviousResponseID = openai.String(second.ID)
	_, err = c.Responses.New(ctx, params)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "previous_response_not_found", refused.Code)
	require.Contains(t, refused.Message, "deleted")
}

// over two gateways with one NATS server and one database, whoever goes on from a response at once finds it, wherever it was made.
func TestChainsOverTwoGateways(t *testing.T) {
	t.Parallel()
	const turns = 12
	srv, database := natstest.StartListening(t), pgtest.New(t)
	upstream := fakellm.Start(t)
	upstream.Handle(counting)
	var gateways []running
	for range 2 {
		s := settings(t, freeport.Port(t), upstream.URL(), upstream.URL())
		s.NATS.URL, s.Sessions.Database = srv.ClientURL(), config.Secret(database)
		gateways = append(gateways, serve(t, s))
	}
	previous := "null"
	for n := range turns {
		var made string
		for range 2 { // two answers to the same question, of which the last one goes on
			status, answer := gateways[n%2].do(t, http.MethodPost, "/v1/responses", fmt.Sprintf(`{"model":"m","previous_response_id":%s,"input":"q%d"}`, previous, n))
			require.Equal(t, http.StatusOK, status, answer)
			require.Equal(t, fmt.Sprintf("%d messages, the last: q%d", 2*n+1, n), gjson.Get(answer, "output.0.content.0.text").Str)
			status, shown := gateways[(n+1)%2].do(t, http.MethodGet, "/v1/responses/"+gjson.Get(answer, "id").Str, "")
			require.Equal(t, http.StatusOK, status)
			require.JSONEq(t, answer, shown)
			made = gjson.Get(answer, "id").Raw
		}
		previous = made
	}
}

// responses belong to who asked.
func TestResponsesOfKeys(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Handle(counting)
	x := withServer(t, upstream.URL(), "client_keys: [one, two], admin_key: "+adminKey, "", nil)
	do := func(key, method, path, body string) (int, string) {
		return x.do(t, method, "/v1/responses"+path, body, "Authorization", "Bearer "+key)
	}
	status, answer := do("one", http.MethodPost, "", `{"model":"m","input":"q1"}`)
	require.Equal(t, http.StatusOK, status, answer)
	id := gjson.Get(answer, "id").Str
	next := fmt.Sprintf(`{"model":"m","input":"q2","previous_response_id":%q}`, id)
	for _, call := range [][3]string{{http.MethodGet, "/" + id}, {http.MethodGet, "/" + id + "/input_items"}, {http.MethodDelete, "/" + id}, {http.MethodPost, "", next}} {
		status, answer := do("two", call[0], call[1], call[2])
		require.Equal(t, http.StatusNotFound, status, call)
		require.Contains(t, answer, id)
	}
	require.Len(t, upstream.Requests(), 1)
	for _, key := range []string{"one", adminKey} {
		status, answer = do(key, http.MethodPost, "", next)
		require.Equal(t, http.StatusOK, status, answer)
		require.Contains(t, answer, "3 messages")
	}
	status, _ = do(adminKey, http.MethodDelete, "/"+id, "")
	require.Equal(t, http.StatusOK, status)
	status, _ = do("one", http.MethodGet, "/"+id, "")
	require.Equal(t, http.StatusNotFound, status)
}

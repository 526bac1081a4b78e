package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
)

// inBackground gives the text of a response in the background when it is completed, and its id. More are members of the request.
func (x running) inBackground(t *testing.T, more string, header ...string) (text, id string) {
	t.Helper()
	status, answer := x.do(t, http.MethodPost, "/v1/responses", `{"background":true,`+more+`}`, header...)
	require.Equal(t, http.StatusOK, status, answer)
	id = gjson.Get(answer, "id").Str
	await.True(t, func() bool {
		status, answer = x.do(t, http.MethodGet, "/v1/responses/"+id, "")
		require.Equal(t, http.StatusOK, status, answer)
		require.NotEqual(t, "failed", gjson.Get(answer, "status").Str, answer)
		return gjson.Get(answer, "status").Str == "completed"
	})
	return gjson.Get(answer, "output.0.content.0.text").Str, id
}

// a response in the background takes the stages that other requests take: with a session, on from another response, and for a model that is not
// configured. It is stored like others, so that it is there when its recording is not any more.
func TestBackgroundResponseTakesAllStages(t *testing.T) {
	t.Parallel()
	srv, upstream := natstest.StartListening(t), fakellm.Start(t)
	upstream.Handle(counting)
	s := settings(t, freeport.Port(t), upstream.URL(), upstream.URL())
	s.NATS.URL = srv.ClientURL()
	x := serve(t, s)

	text, first := x.inBackground(t, `"model":"m","input":"q0"`)
	require.Equal(t, "1 messages, the last: q0", text)
	text, _ = x.inBackground(t, `"model":"m","input":"q1","previous_response_id":"`+first+`"`)
	require.Equal(t, "3 messages, the last: q1", text)
	text, routed := x.inBackground(t, `"model":"pb/real-b","input":"q2"`)
	require.Equal(t, "1 messages, the last: q2", text)
	for _, want := range []string{"1 messages", "3 messages"} {
		text, _ = x.inBackground(t, `"model":"m","input":"q"`, "X-Session-Id", "mine")
		require.Contains(t, text, want)
	}
	// What can't be served fails in sight of whoever asks.
	status, answer := x.do(t, http.MethodPost, "/v1/responses", `{"background":true,"stream":true,"model":"m","input":"q","previous_response_id":"resp_none"}`)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, answer, "response.failed")
	require.Contains(t, answer, "resp_none")

	b := bustest.Connect(t, srv)
	for _, id := range []string{first, routed} {
		before, want := x.do(t, http.MethodGet, "/v1/responses/"+id, "")
		rid, _ := contract.RequestOf(id)
		require.NoError(t, b.ForgetRecorded(t.Context(), rid))
		after, got := x.do(t, http.MethodGet, "/v1/responses/"+id, "")
		require.Equal(t, before, after)
		require.JSONEq(t, want, got)
		status, _ = x.do(t, http.MethodGet, "/v1/responses/"+id+"?stream=true", "")
		require.Equal(t, http.StatusBadRequest, status)
		_, items := x.do(t, http.MethodGet, "/v1/responses/"+id+"/input_items", "")
		require.True(t, strings.Contains(items, "q0") || strings.Contains(items, "q2"), items)
	}
}

// the official SDK polls a response in the background, takes its stream up again, and cancels it.
func TestSDKInBackground(t *testing.T) {
	t.Parallel()
	x := start(t)
	x.a.Queue(fakellm.Stream("one ", "two"), fakellm.Stream("one ", "two").First(2, fakellm.Hang))
	c := x.sdk(t)
	ask := responses.ResponseNewParams{
		Model: "m", Background: openai.Bool(true), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")},
	}
	r, err := c.Responses.New(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, responses.ResponseStatusQueued, r.Status)
	require.True(t, r.Background)
	await.True(t, func() bool {
		r, err = c.Responses.Get(t.Context(), r.ID, responses.ResponseGetParams{})
		require.NoError(t, err)
		return r.Status == responses.ResponseStatusCompleted
	})
	require.Equal(t, "one two", r.OutputText())
	for after := range int64(4) {
		q := responses.ResponseGetParams{}
		if after > 0 {
			q.StartingAfter = openai.Int(after - 1)
		}
		stream, next := c.Responses.GetStreaming(t.Context(), r.ID, q), after
		for stream.Next() {
			require.Equal(t, next, stream.Current().SequenceNumber)
			next++
		}
		require.NoError(t, stream.Err())
		require.Greater(t, next, int64(8))
		require.NoError(t, stream.Close())
	}
	r, err = c.Responses.New(t.Context(), ask)
	require.NoError(t, err)
	for range 2 {
		r, err = c.Responses.Cancel(t.Context(), r.ID)
		require.NoError(t, err)
		require.Equal(t, responses.ResponseStatusCancelled, r.Status)
	}
	require.NoError(t, c.Responses.Delete(t.Context(), r.ID))
	resp, err := http.Head(x.url + "/v1/responses/" + r.ID + "?stream=true") //nolint:noctx // the client has no limit
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
}

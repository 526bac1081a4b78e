package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

// a change counts at once in every service: for the language of the dispatcher's block, for the providers that the analyzer chooses from, and for the list.
func TestSettingsCountEverywhere(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Page("/v1/models", `{"object":"list","data":[{"id":"real","object":"model"}]}`)
	upstream.Handle(fakellm.Talk("hello"))
	x := withServer(t, upstream.URL(), "admin_key: "+adminKey, "", nil)
	put := func(body string) {
		status, answer := x.do(t, http.MethodPut, "/v1/admin/settings", body, "X-Admin-Key", adminKey)
		require.Equal(t, http.StatusOK, status, answer)
	}
	front := func() string {
		n := len(upstream.Requests())
		status, answer := x.do(t, http.MethodPost, "/v1/chat/completions", `{"model":"m","session_id":"s","messages":[{"role":"user","content":"q"}]}`)
		require.Equal(t, http.StatusOK, status, answer)
		return gjson.GetBytes(upstream.Requests()[n].Body, "messages.0.content").Str
	}
	require.Contains(t, front(), "Today's date")
	put(`{"locale":"ko"}`)
	await.True(t, func() bool { return strings.Contains(front(), "오늘 날짜") }) // the dispatcher hears of it a moment later
	put(`{"locale":null}`)
	await.True(t, func() bool { return strings.Contains(front(), "Today's date") })

	automatic := func() int {
		status, _ := x.do(t, http.MethodPost, "/v1/chat/completions", `{"model":"auto","messages":[{"role":"user","content":"q"}]}`)
		return status
	}
	await.True(t, func() bool { return automatic() == http.StatusOK }) // when the models are known
	put(`{"routing.priority":["another"]}`)
	await.True(t, func() bool { return automatic() == http.StatusServiceUnavailable })
	_, list := x.do(t, http.MethodGet, "/v1/models", "")
	require.NotContains(t, list, `"auto"`)
	put(`{"routing.priority":null}`)
	await.True(t, func() bool { return automatic() == http.StatusOK })
}

package chat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/chat"
)

// Whatever comes, a request is refused, or its messages can be taken out and put back without any change of them, and text of the gateway has its place.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:,"}}]}]}`,
		`{"model":"m","stream":true,"prompt":"hi","tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"},"session_id":"s","has_search":true}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a","content":"r"}],"web_fetch":false}`, `{"messages":[{"role":"user","content":"\ud83d"}]}`, `{}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		form := chat.Form{}
		var r contract.Request
		if err := form.Scan([]byte(body), &r); err != nil {
			var bad *openai.RequestError
			require.ErrorAs(t, err, &bad)
			return
		}
		list, err := form.Messages([]byte(body))
		require.NoError(t, err)
		edited := form.WithMessages([]byte(body), list)
		require.True(t, rawjson.Valid(edited), string(edited))
		again, err := form.Messages(edited)
		require.NoError(t, err)
		require.Equal(t, list, again)
		wider, err := form.Messages(form.WithContext([]byte(body), []byte(`{"role":"system","content":"web"}`)))
		require.NoError(t, err)
		require.Len(t, wider, len(list)+1)
		require.Equal(t, list[len(list)-1], wider[len(list)])
	})
}

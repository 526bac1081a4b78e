package surface_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/surface"
)

// a search of the web that the client offers as a tool is known on every surface, and so is one that it demands. It is undone unless the gateway searches.
func TestSearchTools(t *testing.T) {
	t.Parallel()
	const chat, messages, responses = `"messages":[{"role":"user","content":"a"}]`, `"max_tokens":1,"messages":[{"role":"user","content":"a"}]`, `"input":"a"`
	const f = `{"type":"function","name":"f","function":{"name":"f"},"input_schema":{}}`
	long := strings.Repeat("x", 1<<20) // it would not fit into the head of a message
	const custom = `{"name":"f","input_schema":{}}`
	for _, tt := range []struct {
		surface           contract.Surface
		body              string
		offered, demanded bool
	}{
		{contract.SurfaceChat, chat, false, false},
		{contract.SurfaceChat, `"tools":[` + f + `],` + chat, false, false},
		{contract.SurfaceChat, `"tools":[` + f + `,{"type":"web_search"}],` + chat, true, false},
		{contract.SurfaceChat, `"tools":[{"type":"function","function":{"name":"web_search"}}],"tool_choice":"required",` + chat, false, false},
		{contract.SurfaceChat, `"web_search_options":{},` + chat, true, false},
		{contract.SurfaceChat, `"web_search_options":null,` + chat, false, false},
		{contract.SurfaceChat, `"tool_choice":{"type":"web_search_preview"},"has_search":false,"tools":[{"type":"web_search_preview"}],` + chat, true, true},
		{contract.SurfaceMessages, messages, false, false},
		{contract.SurfaceMessages, `"tools":[` + custom + `,{"type":"web_search_20250305","name":"web_search","max_uses":5}],` + messages, true, false},
		{contract.SurfaceMessages, `"tool_choice":{"type":"any"},"tools":[{"type":"web_search_20260101","name":"w"}],` + messages, true, true},
		{contract.SurfaceMessages, `"tools":[` + custom + `,{"type":"web_search_20250305","name":"w"}],"tool_choice":{"type":"any"},` + messages, true, false},
		{contract.SurfaceMessages, `"tools":[` + custom + `,{"type":"web_search_20250305","name":"w"}],"tool_choice":{"type":"tool","name":"w"},` + messages, true, true},
		{contract.SurfaceMessages, `"tools":[` + custom + `,{"type":"web_search_20250305","name":"w"}],"tool_choice":{"type":"tool","name":"f"},` + messages, true, false},
		{contract.SurfaceMessages, `"tools":[{"name":"web_search","input_schema":{}}],"tool_choice":{"type":"tool","name":"web_search"},` + messages, false, false},
		{contract.SurfaceMessages, `"tools":[{"type":"web_search_20250305","name":"` + long + `"}],"tool_choice":{"type":"any"},` + messages, true, true},
		{contract.SurfaceResponses, `"tools":[{"type":"web_search_` + long + `"}],"tool_choice":"required",` + responses, true, true},
		{contract.SurfaceResponses, responses, false, false},
		{contract.SurfaceResponses, `"tools":[` + f + `,{"type":"web_search_preview"}],` + responses, true, false},
		{contract.SurfaceResponses, `"tools":[` + f + `,{"type":"web_search_preview"}],"tool_choice":{"type":"web_search_preview"},` + responses, true, true},
		{contract.SurfaceResponses, `"tools":[{"type":"file_search"},{"type":"web_search"}],"tool_choice":"required",` + responses, true, true},
		{contract.SurfaceResponses, `"tools":[` + f + `,{"type":"web_search"}],"tool_choice":"required",` + responses, true, false},
		{contract.SurfaceResponses, `"tools":[` + f + `,{"type":"web_search"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"}]},` + responses, true, true},
		{contract.SurfaceResponses, `"tools":[` + f + `,{"type":"web_search"}],"tool_choice":{"type":"function","name":"f"},` + responses, true, false},
	} {
		var r contract.Request
		body := []byte(`{"model":"m",` + tt.body + `}`)
		form := surface.FormOf(tt.surface)
		require.NoError(t, form.Scan(body, &r), tt.body)
		require.Equal(t, tt.offered, r.Traits.Searches, tt.body)
		require.Equal(t, tt.demanded, r.Web.Tool != "", tt.body)
		require.LessOrEqual(t, len(r.Web.Tool), 64)
		require.False(t, r.Web.Search, tt.body)
		require.Equal(t, tt.demanded, surface.Undone(&r) != nil, tt.body)
		r.Web.Search = true
		require.NoError(t, surface.Undone(&r))
		hub, err := form.Chat(body)
		require.NoError(t, err, "the gateway has searched: %s", tt.body)
		if tt.demanded && tt.surface != contract.SurfaceChat {
			require.NotContains(t, string(hub), "tool_choice", tt.body)
		}
	}
}

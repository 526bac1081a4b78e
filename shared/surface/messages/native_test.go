package messages_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/messages"
)

// what goes to a provider that speaks the protocol keeps its bytes.
func TestAppendNative(t *testing.T) {
	t.Parallel()
	front := []byte(`{"role":"system","content":"F"}`)
	for name, tt := range map[string]struct {
		in, want string
		front    []byte
	}{
		"bytes":        {in: `{ "max_tokens" : 1.0,"model":"m",  "x":{"a":[1e3]}, "messages":[{"role":"user","content":"\u00e9"}]}`, want: `{ "max_tokens" : 1.0,"model":"real",  "x":{"a":[1e3]}, "messages":[{"role":"user","content":"\u00e9"}]}`},
		"members":      {in: `{"session_id":"s","model":"m","has_search":true,"messages":[],"web_fetch":"u"}`, want: `{"model":"real","messages":[]}`},
		"no model":     {in: `{"messages":[]}`, want: `{"messages":[],"model":"real"}`},
		"front":        {in: `{"model":"m","messages":[]}`, want: `{"model":"real","messages":[],"system":"F"}`, front: front},
		"front behind": {in: `{"model":"m","system":"A","messages":[]}`, want: `{"model":"real","system":[{"type":"text","text":"A"},{"type":"text","text":"F"}],"messages":[]}`, front: front},
		"signed":       {in: `{"model":"m","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}]}`, want: `{"model":"real","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}]}`},
		"unsigned": {
			in:   `{"model":"m","messages":[{"role":"user", "content":"q"},{"role":"assistant","x":1,"content":[{"type":"thinking","thinking":"t","signature":""},{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t"}]}]}`,
			want: `{"model":"real","messages":[{"role":"user", "content":"q"},{"role":"assistant","x":1,"content":[{"type":"text","text":"a"}]}]}`,
		},
	} {
		require.Equal(t, tt.want, string(messages.AppendNative(nil, []byte(tt.in), "real", tt.front)), name)
	}
	require.Equal(t, `{"model":"m"}`, string(messages.AppendNative(nil, []byte(`{"model":"m"}`), "", nil)))
}

func FuzzAppendNative(f *testing.F) {
	f.Add(`{"session_id":"s","model":"m","system":[{"type":"text","text":"A"}],"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"a"}]}]}`)
	f.Add(`{"messages":[{"role":"assistant","content":[{"type":"thinking"}]}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		if (messages.Form{}).Scan([]byte(body), &contract.Request{}) != nil {
			return
		}
		if hub, err := messages.AsChat([]byte(body)); err == nil {
			require.True(t, json.Valid(hub), string(hub))
		}
		for _, front := range [][]byte{nil, []byte(`{"role":"system","content":"F"}`)} {
			out := messages.AppendNative(nil, []byte(body), "real", front)
			require.True(t, json.Valid(out), string(out))
			require.Equal(t, `"real"`, string(rawjson.Get(out, "model")))
		}
	})
}

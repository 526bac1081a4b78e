package completions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface"
	"hydrallm/shared/surface/completions"
)

var form = surface.FormOf(contract.SurfaceCompletions)

// what stages want to know of a request.
func TestScan(t *testing.T) {
	t.Parallel()
	var r contract.Request
	require.NoError(t, form.Scan([]byte(`{"model":"m","prompt":"hello world!","stream":true,"has_search":true,"session_id":"s"}`), &r))
	require.Equal(t, contract.Request{Model: "m", Stream: true, SessionID: "s", Web: contract.Web{Search: true}, Traits: contract.Traits{Tokens: 3, UserText: true}}, r)
	for body, param := range map[string]string{`{"model":"m"}`: "prompt", `{"prompt":"a","messages":[]}`: "messages"} {
		var bad *openai.RequestError
		require.ErrorAs(t, completions.ScanClient([]byte(body), &r), &bad)
		require.Equal(t, param, bad.Param)
	}
	// with the history of a session it is measured again.
	r = contract.Request{}
	require.NoError(t, form.Scan([]byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hello world!"},{"role":"assistant","content":"hello world!"},{"role":"user","content":"?"}]}`), &r))
	require.True(t, r.Stream)
	require.Greater(t, r.Traits.Tokens, int64(6))
}

// the history of a session takes the place of the prompt, on the way to the model only.
func TestMessages(t *testing.T) {
	t.Parallel()
	body := []byte(`{"model":"m","prompt":["and now?"]}`)
	list, err := form.Messages(body)
	require.NoError(t, err)
	require.Equal(t, []contract.Message{{Body: []byte(`{"role":"user","content":"and now?"}`)}}, list)
	before := contract.Message{Body: []byte(`{"role":"assistant","content":"hi"}`)}
	whole := form.WithMessages(body, append([]contract.Message{before}, list...))
	require.Equal(t, `{"model":"m","messages":[{"role":"assistant","content":"hi"},{"role":"user","content":"and now?"}]}`, string(whole))
	list, err = form.Messages(whole)
	require.NoError(t, err)
	require.Len(t, list, 2)
	hub, err := form.Chat(form.WithContext(whole, []byte(`{"role":"system","content":"web"}`)))
	require.NoError(t, err)
	require.Equal(t, `{"model":"m","messages":[{"role":"assistant","content":"hi"},{"role":"system","content":"web"},{"role":"user","content":"and now?"}]}`, string(hub))
	hub, err = form.Chat(form.WithContext(body, []byte(`{"role":"system","content":"web"}`)))
	require.NoError(t, err)
	require.Equal(t, `{"model":"m","messages":[{"role":"system","content":"web"},{"role":"user","content":"and now?"}]}`, string(hub))

	for _, demanding := range []string{`{"prompt":["a","b"]}`, `{"prompt":[1]}`} {
		_, err = form.Messages([]byte(demanding))
		require.ErrorAs(t, err, new(*openai.RequestError))
		_, err = form.Chat([]byte(demanding))
		require.ErrorAs(t, err, new(*openai.RequestError))
		require.Equal(t, demanding, string(form.WithContext([]byte(demanding), []byte(`{}`))))
	}
	require.Equal(t, string(body), string(form.WithMessages(body, nil)))
}

// Whatever comes, a request is refused or becomes one that a chat provider can read, and the history of a session takes the place of its prompt.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","prompt":"hi","max_tokens":9,"logprobs":2,"echo":true,"suffix":"s"}`, `{"prompt":["a","b"],"best_of":3}`, `{"prompt":[1,2]}`,
		`{"prompt":[[1],[2]],"stream":true,"stream_options":{"include_usage":true}}`, `{"messages":[{"role":"user","content":"hi"}]}`, `{"prompt":"\ud83d","session_id":"s"}`, `{}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var r contract.Request
		if err := completions.ScanClient([]byte(body), &r); err != nil {
			var bad *openai.RequestError
			require.ErrorAs(t, err, &bad)
			return
		}
		require.GreaterOrEqual(t, r.Traits.Tokens, int64(0))
		if hub, err := form.Chat([]byte(body)); err == nil {
			require.NotNil(t, rawjson.Get(hub, "messages"))
			require.True(t, rawjson.Valid(hub), string(hub))
			require.Nil(t, rawjson.Get(hub, "prompt"))
		}
		list, err := form.Messages([]byte(body))
		if err != nil {
			return
		}
		edited := form.WithMessages([]byte(body), list)
		require.True(t, rawjson.Valid(edited), string(edited))
		var again contract.Request
		require.NoError(t, form.Scan(edited, &again))
		require.Equal(t, r.Model, again.Model)
		require.Equal(t, r.Stream, again.Stream)
		require.True(t, rawjson.Valid(form.WithContext([]byte(body), []byte(`{"role":"system","content":"web"}`))))
	})
}

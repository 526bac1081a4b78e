package completions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
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

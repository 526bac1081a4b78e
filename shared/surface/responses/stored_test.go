package responses_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/responses"
)

func nothing(ref responses.Reference) ([]byte, error) { return nil, responses.NotFound(ref) }

// what a request goes on from stands before its own input, which keeps its bytes.
func TestContinue(t *testing.T) {
	t.Parallel()
	chain := []responses.Link{
		{Input: []byte(`[{"role":"user","content":"a"}]`), Output: []byte(`[{"id":"1"},{"type":"function_call","call_id":"c","status":"incomplete"},{"type":"message","status":"incomplete"}]`)},
		{Input: []byte(`[ {"x" : 1.0} ]`)},
	}
	edited, n, err := responses.Continue([]byte(`{"model":"m", "input":[{"y" : 2.0}],"user":"u"}`), chain, nothing)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, `{"model":"m", "input":[{"role":"user","content":"a"},{"id":"1"},{"type":"message","status":"incomplete"},{"x" : 1.0},{"y" : 2.0}],"user":"u"}`, string(edited))

	edited, n, err = responses.Continue([]byte(`{"input":"q"}`), nil, nothing)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, `{"input":[{"type":"message","role":"user","content":"q"}]}`, string(edited))

	edited, _, err = responses.Continue([]byte(`{"input":[{"type":"item_reference","id":"i"},{"id":"j"}]}`), nil, func(ref responses.Reference) ([]byte, error) {
		require.Equal(t, responses.Reference{Item: "i", At: "input[0]"}, ref)
		return []byte(`{"found":1}`), nil
	})
	require.NoError(t, err)
	require.Equal(t, `{"input":[{"found":1},{"id":"j"}]}`, string(edited))
	_, _, err = responses.Continue([]byte(`{"input":[{"type":"item_reference","id":"i"}]}`), nil, nothing)
	require.ErrorAs(t, err, new(*openai.RequestError))
}

// Whatever a request that was read holds, it can be continued, and its items can be listed and told apart.
func FuzzStored(f *testing.F) {
	f.Add(`{"input":`+words("uq ax c1 c2 o1 o2 un")+`}`, `[{"role":"user","content":"a"}]`)
	f.Add(`{"input":[{"type":"item_reference","id":"x"},{"role":"user","content":[]}]}`, `[{"id":"x"},{"id":"x"},{}]`)
	f.Add(`{"input":"q"}`, `[{"type":"message","role":"assistant","content":"t"},1,"x"]`)
	f.Fuzz(func(t *testing.T, body, items string) {
		if !rawjson.Valid([]byte(items)) || items[0] != '[' {
			return
		}
		ids := map[string]bool{}
		for _, it := range responses.ListInput("r", []byte(items)) {
			require.False(t, ids[it.ID], items)
			ids[it.ID] = true
		}
		read, err := responses.Read([]byte(body))
		if err != nil {
			return
		}
		edited, n, err := responses.Continue([]byte(body), []responses.Link{{Input: []byte(items)}}, nothing)
		if len(read.References) > 0 {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.True(t, json.Valid(edited))
		all := rawjson.Get(edited, "input")
		count := 0
		for range rawjson.Elements(all) {
			count++
		}
		own := 0
		for range rawjson.Elements(read.Items()) {
			own++
		}
		require.Equal(t, n+own, count)
		if _, err := responses.Read(edited); err != nil {
			require.ErrorAs(t, err, new(*openai.RequestError))
		}
	})
}

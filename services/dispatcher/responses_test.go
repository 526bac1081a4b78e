package dispatcher_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/fakellm"
)

// a response that is to be stored is a fact by the time that its end is there, whole or failed, and tells what the client got. A refusal is none.
func TestResponsesAreFacts(t *testing.T) {
	t.Parallel()
	const plain, streamed = `{"model":"m","input":[{"role":"user","content":"old"},{"role":"user","content":"hi"}]}`, `{"model":"m","stream":true,"input":[{"role":"user","content":"old"},{"role":"user","content":"hi"}]}`
	whole := fakellm.JSON(http.StatusOK, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"one two"},"finish_reason":"stop"}]}`)
	for name, tt := range map[string]struct {
		body, status string // of the response; "" = there is no fact
		answer       fakellm.Answer
		text         string
	}{
		"whole":              {plain, "completed", whole, "one two"},
		"whole, as a stream": {streamed, "completed", whole, "one two"},
		"stream":             {streamed, "completed", fakellm.Stream("one ", "two"), "one two"},
		"stream, collected":  {plain, "completed", fakellm.Stream("one ", "two"), "one two"},
		"broken stream":      {streamed, "failed", fakellm.Stream("one ", "two").First(2, fakellm.Reset), "one "},
		"refused":            {plain, "", fakellm.Error(http.StatusBadRequest, "no"), ""},
		"failed":             {streamed, "", fakellm.Error(http.StatusInternalServerError, "no"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			p.upstream.Handle(func(fakellm.Request) fakellm.Answer { return tt.answer })
			p.start("d1", p.oneUpstream(""))
			ofResponses := func(store bool) func(r *contract.Request) {
				return func(r *contract.Request) {
					r.Surface, r.Store, r.Principal, r.Previous, r.Inherited = contract.SurfaceResponses, store, "k:1", "resp_0", 1
				}
			}
			find := func(rid string) (contract.StoredResponse, bool) {
				f, ok, err := p.bus.NextFact(t.Context(), subject.Stored(contract.ResponseID(rid)), 1)
				require.NoError(t, err)
				if !ok {
					return contract.StoredResponse{}, false
				}
				s, err := contract.ParseStoredResponse(f.Data)
				require.NoError(t, err)
				return s, true
			}
			p.get("r1", tt.body, ofResponses(false))
			_, ok := find("r1")
			require.False(t, ok, "it is not to be stored")
			r := p.get("r2", tt.body, ofResponses(true))
			s, ok := find("r2")
			require.Equal(t, tt.status != "", ok)
			if !ok {
				return
			}
			require.Equal(t, []string{"resp_r2", "k:1", `[{"role":"user","content":"hi"}]`}, []string{s.ID, s.Owner, string(s.Input)})
			got := gjson.ParseBytes(s.Response)
			require.Equal(t, tt.status, got.Get("status").String())
			require.Equal(t, tt.text, got.Get("output.0.content.0.text").String())
			require.True(t, got.Get("store").Bool())
			require.Contains(t, r.body, string(s.Response))
		})
	}
}

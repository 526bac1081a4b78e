package execute_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/shared/contract"
)

const vectors = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-0.25]}],"model":"real","usage":{"prompt_tokens":4,"total_tokens":4}}`

// embed executes an embeddings request.
func (w *world) embed(body string, d contract.Decision) (*answer, execute.Outcome) {
	var a answer
	j := execute.Job{Body: []byte(body), Request: &contract.Request{ID: "r1", Model: "m", Operation: contract.Embeddings, Decision: &d}}
	out := w.exec.Run(w.t.Context(), j, &a)
	return &a, out
}

// Embeddings go through the same chain, keys and breakers as chat; the client gets the format that it asked for.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	var path, sent string
	good := func(w http.ResponseWriter, r *http.Request, n int) {
		body, _ := io.ReadAll(r.Body)
		path, sent = r.URL.Path, string(body)
		status(http.StatusOK, vectors)(w, r, n)
	}
	bubble(t, map[string]handler{"a": inTurn(status(503, "{}"), status(200, `{"object":"list","data":[]}`), status(200, "<html>")), "b": good}, func(w *world) {
		t := w.t
		configured := contract.Decision{Model: "m", Configured: true, PinProvider: true}
		got, out := w.embed(`{"model":"m","input":"hi","encoding_format":"base64"}`, configured)
		require.Equal(t, "/v1/embeddings", path)
		require.JSONEq(t, `{"model":"real-b","input":"hi","encoding_format":"base64"}`, sent)
		require.Equal(t, http.StatusOK, got.head.Status)
		require.Equal(t, "AAAAPwAAgL4=", gjson.Get(got.text(), "data.0.embedding").Str)
		require.Equal(t, "real", gjson.Get(got.text(), "model").Str)
		require.EqualValues(t, 4, out.Usage.Total)
		require.Len(t, out.Usage.Attempts, 2)

		for range 2 { // no vectors, and no JSON, are failures like any other
			got, out = w.embed(`{"model":"m","input":"hi"}`, contract.Decision{Provider: "pa", Model: "real-a"})
			require.Equal(t, "m", gjson.Get(got.text(), "model").Str, "C-07")
			require.Equal(t, "[0.5,-0.25]", gjson.Get(got.text(), "data.0.embedding").Raw)
			require.Len(t, out.Usage.Attempts, 2)
		}
		require.Equal(t, 3, w.called("a"))
	})
}

// what the provider says of a bad request is the client's.
func TestEmbeddingsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(400, `{"error":{"message":"dimensions too many","type":"invalid_request_error"}}`), "b": reply("b")}, func(w *world) {
		got, _ := w.embed(`{"model":"m","input":"hi"}`, contract.Decision{Model: "m", Configured: true})
		require.Equal(w.t, http.StatusBadRequest, got.head.Status)
		require.Contains(w.t, got.text(), "dimensions too many")
		require.Zero(w.t, w.called("b"))
	})
}

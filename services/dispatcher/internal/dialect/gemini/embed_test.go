package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/services/dispatcher/internal/embed"
	"hydrallm/shared/openai"
)

// texts go to batchEmbedContents as they are, in order, and the answer is one that package embed reads.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, want string }{
		"one text":   {`{"model":"emb","input":"a\u00e9 \"q\""}`, `{"requests":[{"model":"models/emb","content":{"parts":[{"text":"a\u00e9 \"q\""}]}}]}`},
		"with width": {`{"model":"models/emb","input":["a"],"dimensions":256,"user":"u"}`, `{"requests":[{"model":"models/emb","content":{"parts":[{"text":"a"}]},"outputDimensionality":256}]}`},
		"two texts":  {`{"model":"emb","input":["a","b"],"encoding_format":"base64","dimensions":null}`, `{"requests":[{"model":"models/emb","content":{"parts":[{"text":"a"}]}},{"model":"models/emb","content":{"parts":[{"text":"b"}]}}]}`},
	} {
		native, err := gemini.Translator{}.Embeddings([]byte(tc.body))
		require.NoError(t, err, name)
		require.Equal(t, "/models/emb:batchEmbedContents", native.Path, name)
		require.Equal(t, tc.want, string(native.Body), name)
	}
	native, err := gemini.Translator{}.Embeddings([]byte(`{"model":"../x?y:z","input":"a"}`))
	require.NoError(t, err)
	require.Equal(t, "/models/..%2Fx%3Fy%3Az:batchEmbedContents", native.Path)

	req, err := openai.ScanEmbeddings([]byte(`{"model":"emb","input":["a","b"]}`))
	require.NoError(t, err)
	out, _, err := embed.Answer(req, []byte(`{"embeddings":[{"values":[0.5]},{"values":[-1]}]}`), "gemini/emb")
	require.NoError(t, err)
	require.Contains(t, string(out), `"embedding":[-1]`)
}

func TestEmbeddingsThatAreRefused(t *testing.T) {
	t.Parallel()
	for body, param := range map[string]string{
		`{"model":"emb","input":[1,2]}`:     "input",
		`{"model":"emb","input":[[1],[2]]}`: "input",
		`{"model":"emb","input":["a",1]}`:   "input",
		`{"model":"emb"}`:                   "input",
		`{"model":"","input":"a"}`:          "model",
		`[]`:                                "",
		`{"model":`:                         "",
	} {
		_, err := gemini.Translator{}.Embeddings([]byte(body))
		var refused *openai.RequestError
		require.ErrorAs(t, err, &refused, body)
		require.Equal(t, param, refused.Param, body)
	}
}

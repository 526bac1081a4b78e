package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/openai/rawjson"
)

var _ dialect.Embedder = Translator{}

// Embeddings translates a request to Embeddings into one to batchEmbedContents. Texts stay as the client wrote them; token numbers mean
// something to OpenAI's models only.
func (Translator) Embeddings(body []byte) (dialect.Native, error) {
	r, err := readRequest(body)
	if err != nil {
		return dialect.Native{}, err
	}
	model := strings.TrimPrefix(r.members["model"].Str, "models/")
	if model == "" {
		return dialect.Native{}, refuse("model", "must be the name of a model")
	}
	inputs := []gjson.Result{r.members["input"]}
	if inputs[0].IsArray() {
		inputs = inputs[0].Array()
	}
	out := []byte(`{"requests":[`)
	for i, input := range inputs {
		if input.Type != gjson.String {
			return dialect.Native{}, refuse("input", "must be text for this provider, whose models have tokens of their own")
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendString(append(out, `{"model":`...), "models/"+model)
		out = append(append(append(out, `,"content":{"parts":[{"text":`...), input.Raw...), `}]}`...)
		if n := r.members["dimensions"]; n.Type == gjson.Number {
			out = append(append(out, `,"outputDimensionality":`...), n.Raw...)
		}
		out = append(out, '}')
	}
	return dialect.Native{Path: modelPath(model) + ":batchEmbedContents", Body: append(out, "]}"...)}, nil
}

package discover_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/shared/testkit/fixtures"
)

// noList are samples about models that are not asked for to list them.
var noList = map[string]string{
	"openai/model-retrieve.json": "about one model",
	"ollama/ps.json":             "windows of running models, read by package dialect/ollama for each request",
}

// Nothing among the samples that says something of models or keys is forgotten.
func TestEverySampleOfModelsIsRead(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, tt := range recorded {
		for _, file := range tt.files {
			used[file] = true
		}
	}
	for _, f := range fixtures.For(fixtures.Models) {
		require.NotEqual(t, noList[f.File] != "", used[f.File], f.File)
	}
}

// what is said of one model is no list of models.
func TestOneModelIsNoList(t *testing.T) {
	t.Parallel()
	source := discover.Source{Dialect: "openai", URL: "https://h/v1"}
	_, err := discover.List(t.Context(), serve(map[string]string{"/v1/models": "openai/model-retrieve.json"}), source, "key")
	var refused *discover.RefusedError
	require.ErrorAs(t, err, &refused)
}

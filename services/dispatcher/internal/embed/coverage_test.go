package embed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fixtures"
)

// No answer with vectors among the fixtures is forgotten.
func TestEverySampleIsRead(t *testing.T) {
	t.Parallel()
	var files []string
	for _, f := range fixtures.For(fixtures.Embeddings) {
		files = append(files, f.File)
	}
	require.ElementsMatch(t, samples, files)
}

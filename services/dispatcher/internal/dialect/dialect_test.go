package dialect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/dialect"
)

func TestOperation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ base, path, want string }{
		"plain":               {"http://h/v1", "/chat/completions", "http://h/v1/chat/completions"},
		"a query of the base": {"http://h/v1?key=k", "/embeddings", "http://h/v1/embeddings?key=k"},
		"a query of the path": {"http://h/v1", "/m:stream?alt=sse", "http://h/v1/m:stream?alt=sse"},
		"a query of both":     {"http://h/v1?key=k", "/m:stream?alt=sse", "http://h/v1/m:stream?alt=sse&key=k"},
		"an empty query":      {"http://h/v1?", "/embeddings", "http://h/v1/embeddings?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, dialect.Operation(tt.base, tt.path))
		})
	}
}

package phrase

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCount(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0 providers, 1 provider, 12 providers", Count(0, "provider")+", "+Count(1, "provider")+", "+Count(12, "provider"))
}

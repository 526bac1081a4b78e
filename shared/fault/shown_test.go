package fault_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/fault"
)

func TestShown(t *testing.T) {
	t.Parallel()
	require.Equal(t, "имя/a b", fault.Shown("имя/a b"))
	require.Equal(t, "a\uFFFDb\uFFFD\uFFFDc\uFFFD", fault.Shown("a\nb\x1b\u202ec\xff"))
	require.Equal(t, strings.Repeat("й", 200)+"...", fault.Shown(strings.Repeat("й", 1<<20)))
	require.Equal(t, strings.Repeat("й", 200), fault.Shown(strings.Repeat("й", 200)))
}

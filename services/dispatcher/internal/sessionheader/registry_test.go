package sessionheader

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// of two requests that both found nothing, the second takes the id of the first.
func TestAddKeepsTheFirst(t *testing.T) {
	t.Parallel()
	var tb table
	r := root{1}
	require.Equal(t, "first", tb.add(r, affinity{id: "first"}).id)
	require.Equal(t, "first", tb.add(r, affinity{id: "second"}).id)
	s, ok := tb.use(r)
	require.True(t, ok)
	require.Equal(t, "first", s.id)
}

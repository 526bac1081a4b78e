package query_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

// headers are read as they were written, by either database; rows of older versions have none.
func TestHeaders(t *testing.T) {
	t.Parallel()
	text := string(contract.AppendHeaders(nil, [][2]string{{"Cf-Ray", "8a\"b"}, {"Server", ""}}))
	for _, value := range []any{text, []byte(text)} {
		h := query.Headers{"of": "before"}
		require.NoError(t, h.Scan(value))
		require.Equal(t, query.Headers{"Cf-Ray": "8a\"b", "Server": ""}, h)
	}
	h := query.Headers{"of": "before"}
	require.NoError(t, h.Scan(""))
	require.Nil(t, h)
	for _, bad := range []any{nil, 1, "{}", `["a"]`, "x"} {
		require.ErrorIs(t, h.Scan(bad), query.ErrBadHeaders, bad)
	}
}

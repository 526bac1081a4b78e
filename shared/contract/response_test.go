package contract_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

//
func TestStoredResponse(t *testing.T) {
	t.Parallel()
	want := contract.StoredResponse{
		ID: "resp_1", Previous: "resp_0", Owner: "k:1", Input: []byte(`[{"a":"<\n>"}]`), Response: []byte("{\n\"id\":1}"), At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	}
	data, err := want.Encode()
	require.NoError(t, err)
	got, err := contract.ParseStoredResponse(data)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, bad := range []string{"", "{}", "{}\n", "x\n[]{}", `{"id":"r","input":3}` + "\n[]", `{"id":"r","input":-1}` + "\n[]{}", `{"id":"r","input":2}` + "\n{}[]", `{"id":"r","input":2}` + "\n[]{"} {
		_, err := contract.ParseStoredResponse([]byte(bad))
		require.ErrorIs(t, err, contract.ErrNotAResponse, bad)
	}
}

// the id of an item tells the response that it is in.
func TestResponseOfItem(t *testing.T) {
	t.Parallel()
	id, ok := contract.ResponseOfItem("msg_0a1b_12")
	require.True(t, ok)
	require.Equal(t, contract.ResponseID("0a1b"), id)
	for _, item := range []string{"", "msg", "msg_unknown", "msg__1", "msg_x_", "msg_a_b_c"} {
		_, ok := contract.ResponseOfItem(item)
		require.False(t, ok, item)
	}
}

func FuzzParseStoredResponse(f *testing.F) {
	f.Add([]byte(`{"id":"r","owner":"k","input":2}` + "\n[]{}"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := contract.ParseStoredResponse(data)
		if err != nil {
			require.ErrorIs(t, err, contract.ErrNotAResponse)
			return
		}
		again, err := s.Encode()
		require.NoError(t, err)
		same, err := contract.ParseStoredResponse(again)
		require.NoError(t, err)
		require.Equal(t, s, same)
	})
}

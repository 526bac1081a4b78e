package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever an operator sends: what is accepted is what a decoder reads, and what is refused is not repeated.
func FuzzScanNewKeys(f *testing.F) {
	for _, seed := range []string{
		`{"provider":"gemini","keys":["Key-1"," Key-2 ",""]}`, `{"keys":[],"provider":"p","x":{"keys":[1]}}`, `{"provider":"p","keys":["a",5]}`, `{"provider":1}`, `[]`,
		`{"provider":"p","keys":["\u0041\n"]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, fault := scanNewKeys(body)
		if fault != nil {
			require.Equal(t, 400, fault.Status())
			require.Less(t, len(fault.Message), 100)
			return
		}
		var all map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(body, &all))
		var want struct {
			Provider string
			Keys     []string
		}
		require.NoError(t, json.Unmarshal(all["provider"], &want.Provider))
		require.NoError(t, json.Unmarshal(all["keys"], &want.Keys))
		require.Equal(t, strings.TrimSpace(want.Provider), got.provider)
		var keys []string
		for _, k := range want.Keys {
			if k = strings.TrimSpace(k); k != "" {
				keys = append(keys, k)
			}
		}
		require.Equal(t, keys, got.keys)
	})
}

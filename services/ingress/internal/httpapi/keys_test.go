package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/clientkey"
	"hydrallm/shared/fault"
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

// What an operator says of a client key is taken over as a whole or refused with the name of the member, and nothing else of the key changes.
func FuzzReadKey(f *testing.F) {
	f.Add([]byte(`{"name":"a","allowed_models":[" m "],"limits":{"rpm":1},"budget":{"amount":1,"unit":"tokens","period":"day"},"expires_at":"2027-01-31T00:00:00Z"}`))
	f.Add([]byte(`{"id":"x"}`))
	f.Add([]byte(`{"limits":{"rpm":1e9,"odd":1},"budget":null,"allowed_models":[null]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		k := clientkey.Key{ID: "id", Hash: []byte("hash"), CreatedAt: time.Unix(1, 0)}
		err := readKey(body, &k)
		require.Equal(t, "id", k.ID)
		require.Equal(t, "hash", string(k.Hash))
		require.Equal(t, time.Unix(1, 0), k.CreatedAt)
		require.True(t, k.RevokedAt.IsZero())
		if err != nil {
			require.ErrorAs(t, err, new(*fault.Fault))
			return
		}
		require.True(t, json.Valid(body))
	})
}

package modelindex

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever is in the bucket: an error, or a listing that survives being written again.
func FuzzDecode(f *testing.F) {
	l := Listing{Provider: "p", Models: []Model{{ID: "m", Tier: "free", Window: 1}}}
	value, err := l.encode()
	require.NoError(f, err)
	f.Add(value)
	f.Add(value[:len(value)/2])
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, value []byte) {
		l, err := decode(value)
		if err != nil {
			return
		}
		again, err := l.encode()
		if err != nil {
			return // a time that can't be written
		}
		back, err := decode(again)
		require.NoError(t, err)
		require.Len(t, back.Models, len(l.Models))
	})
}

// A small value must not become a large one.
func TestDecodeIsBounded(t *testing.T) {
	t.Parallel()
	l := Listing{Models: []Model{{ID: string(bytes.Repeat([]byte("a"), maxListing))}}}
	value, err := l.encode()
	require.NoError(t, err)
	require.Less(t, len(value), 1<<20)
	_, err = decode(value)
	require.Error(t, err)
}

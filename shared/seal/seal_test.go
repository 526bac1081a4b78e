package seal_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/seal"
)

const secret = "0123456789abcdef0123456789abcdef"

// vectors were made with another implementation. They must stay readable: what is sealed today is opened by later versions.
var vectors = []struct{ secret, plain, context, sealed, fingerprint string }{
	{
		"correct horse battery staple", "gsk-0123456789", "groq",
		"01000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b484ce6ef55ea797b13175dd297a7021dc639ca469f534dd93c9c1dc56fbc",
		"29160f1e65b5b336839a31223d56a37a",
	},
	{
		"k", "", "",
		"010000000000000000000000000000000000000000000000000000000000000000ffffffffffffffffffffffffd334aa743356cd07cb66e9d79a52e3df",
		"569a7cb22d4d5a4b63a8fe04697a57d0",
	},
	{
		"Schlüssel", "geheim ✓", "provider-ü",
		"01fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e06465666768696a6b6c6d6e6ff85f265f76edc7e8396c7c2cfea7805aae6ecdd3253704373a40",
		"b349e786bfa6e6a1c64793e05801db2b",
	},
}

func TestVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectors {
		sealed, err := hex.DecodeString(v.sealed)
		require.NoError(t, err)
		plain, err := seal.Open(v.secret, sealed, v.context)
		require.NoError(t, err)
		require.Equal(t, v.plain, string(plain))
		fingerprint, err := seal.Fingerprint(v.secret, v.plain, v.context)
		require.NoError(t, err)
		require.Equal(t, v.fingerprint, fingerprint)
	}
}

func sealed(t *testing.T, plain, context string) []byte {
	t.Helper()
	text, err := seal.Seal(secret, []byte(plain), context)
	require.NoError(t, err)
	return text
}

func TestSeal(t *testing.T) {
	t.Parallel()
	const plain = "a provider's key"
	text := sealed(t, plain, "groq")
	require.NotContains(t, string(text), plain)
	require.NotContains(t, string(text), secret)
	got, err := seal.Open(secret, text, "groq")
	require.NoError(t, err)
	require.Equal(t, plain, string(got))
	require.NotEqual(t, text, sealed(t, plain, "groq")) // who compares texts learns nothing
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	text := sealed(t, "plain", "groq")
	for name, tc := range map[string]struct {
		secret, context string
		sealed          []byte
		want            error
	}{
		"another secret":  {secret + "x", "groq", text, seal.ErrOpen},
		"no secret":       {"", "groq", text, seal.ErrNoSecret},
		"another context": {secret, "gemini", text, seal.ErrOpen},
		"no context":      {secret, "", text, seal.ErrOpen},
		"nothing":         {secret, "groq", nil, seal.ErrOpen},
		"cut off":         {secret, "groq", text[:len(text)-1], seal.ErrOpen},
		"more behind it":  {secret, "groq", append(bytes.Clone(text), 0), seal.ErrOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, err := seal.Open(tc.secret, tc.sealed, tc.context)
			require.ErrorIs(t, err, tc.want)
			require.Nil(t, plain)
		})
	}
	for i := range text {
		for bit := range 8 {
			altered := bytes.Clone(text)
			altered[i] ^= 1 << bit
			_, err := seal.Open(secret, altered, "groq")
			require.ErrorIs(t, err, seal.ErrOpen, "byte %d", i)
		}
	}
}

func TestNoSecret(t *testing.T) {
	t.Parallel()
	_, err := seal.Seal("", []byte("plain"), "groq")
	require.ErrorIs(t, err, seal.ErrNoSecret)
	_, err = seal.Fingerprint("", "value", "groq")
	require.ErrorIs(t, err, seal.ErrNoSecret)
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	of := func(secret, value, context string) string {
		f, err := seal.Fingerprint(secret, value, context)
		require.NoError(t, err)
		require.Regexp(t, "^[0-9a-f]{32}$", f)
		return f
	}
	first, again := of(secret, "key", "groq"), of(secret, "key", "groq")
	require.Equal(t, first, again)
	seen := map[string]bool{}
	for _, f := range []string{
		of(secret, "key", "groq"), of(secret, "key", "gemini"), of(secret, "key2", "groq"), of(secret+"x", "key", "groq"),
		of(secret, "qkey", "gro"), of(secret, "", ""),
	} {
		require.False(t, seen[f])
		seen[f] = true
	}
}

// Whatever is opened was sealed with the same secret and context.
func FuzzOpen(f *testing.F) {
	known := map[string]string{}
	for _, v := range vectors {
		text, err := hex.DecodeString(v.sealed)
		require.NoError(f, err)
		known[v.secret+"\x00"+v.context+"\x00"+string(text)] = v.plain
		f.Add(v.secret, text, v.context)
	}
	f.Add(secret, []byte{1}, "groq")
	f.Add("", []byte{}, "")
	f.Fuzz(func(t *testing.T, secret string, text []byte, context string) {
		before := bytes.Clone(text)
		plain, err := seal.Open(secret, text, context)
		require.Equal(t, before, text)
		if err == nil {
			want, ok := known[secret+"\x00"+context+"\x00"+string(text)]
			require.True(t, ok)
			require.Equal(t, want, string(plain))
			return
		}
		require.Nil(t, plain)
		if secret == "" {
			return
		}
		again, err := seal.Seal(secret, text, context)
		require.NoError(t, err)
		plain, err = seal.Open(secret, again, context)
		require.NoError(t, err)
		require.True(t, bytes.Equal(text, plain))
	})
}

package archive

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sample(tb testing.TB) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	for i := range 3 {
		require.NoError(tb, w.Add(fmt.Sprintf("database/%06d-settings", i+1), []byte(fmt.Sprintf("[\"name\"]\n[%d]\n", i))))
	}
	require.NoError(tb, w.Close(Manifest{Version: "1.2.3", Schema: 9, Note: "note"}))
	return out.Bytes()
}

func parts(data []byte) (names []string, m Manifest, err error) {
	m, err = Read(bytes.NewReader(data), func(name string, _ []byte) error {
		names = append(names, name)
		return nil
	})
	return names, m, err
}

func TestReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	names, m, err := parts(sample(t))
	require.NoError(t, err)
	require.Equal(t, []string{"database/000001-settings", "database/000002-settings", "database/000003-settings"}, names)
	require.Equal(t, "1.2.3", m.Version)
	require.Equal(t, int64(9), m.Schema)
	require.Len(t, m.Parts, 3)
	kind, name := Section(names[1])
	require.Equal(t, []string{"database", "settings"}, []string{kind, name})
}

// wherever it is cut off, and whichever byte is another one, it is not taken for sound.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	data := sample(t)
	_, want, err := parts(data)
	require.NoError(t, err)
	for i := range data {
		_, _, err := parts(data[:i])
		require.Error(t, err, i)
		other := slices.Clone(data)
		other[i] ^= 0x40
		if _, got, err := parts(other); err == nil {
			require.Equal(t, want, got, i) // of what nobody reads, such as the time in the header of gzip: digests and all are the same
		}
	}
}

// the message names the part.
func TestTheDamagedPartIsNamed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := NewWriter(&out, time.Now())
	require.NoError(t, w.Add("bucket/000001-hydra_keys", []byte("one")))
	w.parts[0].SHA256 = "another"
	require.NoError(t, w.Close(Manifest{}))
	_, _, err := parts(out.Bytes())
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "bucket/000001-hydra_keys")

	out.Reset()
	w = NewWriter(&out, time.Now())
	w.parts = append(w.parts, Part{Name: "bucket/000001-hydra_keys"})
	require.NoError(t, w.Close(Manifest{}))
	_, _, err = parts(out.Bytes())
	require.ErrorContains(t, err, "bucket/000001-hydra_keys is missing")

	out.Reset()
	w = NewWriter(&out, time.Now())
	require.NoError(t, w.Add("database/000001-parts", []byte("x")))
	require.NoError(t, w.tar.Close())
	require.NoError(t, w.zip.Close())
	_, _, err = parts(out.Bytes())
	require.ErrorIs(t, err, ErrCutOff)
	require.ErrorContains(t, err, "database/000001-parts")

	out.Reset()
	w = NewWriter(&out, time.Now())
	require.NoError(t, w.file(manifestName, []byte(`{"format":99,"version":"9.9"}`)))
	require.NoError(t, w.tar.Close())
	require.NoError(t, w.zip.Close())
	_, _, err = parts(out.Bytes())
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "9.9")
}

func FuzzRead(f *testing.F) {
	f.Add(sample(f))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		names, m, err := parts(data)
		if err == nil && len(names) != len(m.Parts) {
			t.Fatal("parts that the manifest does not have")
		}
	})
}

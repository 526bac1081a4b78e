package upload

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"hydrallm/shared/fault"
)

func gzipped(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, err := w.Write(data)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return buf.Bytes()
}

func zstandard(tb testing.TB, data []byte) []byte {
	tb.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(tb, err)
	return w.EncodeAll(data, nil)
}

// wide is a zstd frame whose decoder needs a window of 16 MiB.
func wide(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var buf bytes.Buffer
	w, err := zstd.NewWriter(&buf, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(16<<20))
	require.NoError(tb, err)
	_, err = w.Write(data)
	require.NoError(tb, err)
	require.NoError(tb, w.Flush())
	require.NoError(tb, w.Close())
	return buf.Bytes()
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// R-014, DoS: whatever is announced, at most a byte above the limit is taken.
func TestReadAll(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	tests := map[string]struct{ size, announced int }{
		"empty":                      {0, 0},
		"one byte":                   {1, 1},
		"fills the first buffer":     {firstRoom, firstRoom},
		"a byte more":                {firstRoom + 1, firstRoom + 1},
		"announced and large":        {900_000, 900_000},
		"not announced":              {900_000, 0},
		"exactly the limit":          {limit, limit},
		"the limit, not announced":   {limit, 0},
		"above, not announced":       {limit + 1, 0},
		"far above, not announced":   {3 * limit, 0},
		"less came than was said":    {10, 900_000},
		"more came than was said":    {100_000, 10},
		"above, and a lie about it":  {2 * limit, 10},
		"trusted room and no more":   {trusted, trusted},
		"trusted room and a bit":     {trusted + 1, trusted + 1},
		"announced with odd lengths": {123_457, 123_457},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := bytes.Repeat([]byte("0123456789"), tt.size/10+1)[:tt.size]
			for _, wrap := range []func(io.Reader) io.Reader{iotest.HalfReader, iotest.DataErrReader, func(r io.Reader) io.Reader { return r }} {
				src := &counter{r: wrap(bytes.NewReader(data))}
				got, err := readAll(src, tt.announced, limit)
				require.LessOrEqual(t, src.n, limit+1)
				if tt.size > limit {
					require.Equal(t, http.StatusRequestEntityTooLarge, fault.From(err).Status())
					require.Contains(t, err.Error(), "1048576")
					continue
				}
				require.NoError(t, err)
				require.True(t, bytes.Equal(data, got))
				require.LessOrEqual(t, cap(got), limit+1)
				Release(got)
			}
		})
	}
}

func TestReadAllPassesErrorsOn(t *testing.T) {
	t.Parallel()
	errBroken := errors.New("broken")
	_, err := readAll(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(errBroken)), 0, 100)
	require.ErrorIs(t, err, errBroken)
}

// HDR-03.
func TestDecoders(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat(`{"model":"m"}`, 5000))
	tests := map[string]struct {
		encoding string
		body     []byte
		ok       bool
	}{
		"gzip":                        {"gzip", gzipped(t, text), true},
		"gzip of nothing":             {"gzip", gzipped(t, nil), true},
		"two gzip members":            {"gzip", append(gzipped(t, text[:100]), gzipped(t, text[100:])...), true},
		"gzip, cut":                   {"gzip", gzipped(t, text)[:100], false},
		"gzip, no checksum":           {"gzip", gzipped(t, text)[:len(gzipped(t, text))-4], false},
		"gzip and garbage":            {"gzip", append(gzipped(t, text), "garbage"...), false},
		"no gzip":                     {"gzip", text, false},
		"empty gzip":                  {"gzip", nil, false},
		"zstd":                        {"zstd", zstandard(t, text), true},
		"two zstd frames":             {"zstd", append(zstandard(t, text[:100]), zstandard(t, text[100:])...), true},
		"zstd, cut":                   {"zstd", zstandard(t, text)[:20], false},
		"zstd and garbage":            {"zstd", append(zstandard(t, text), "garbage"...), false},
		"no zstd":                     {"zstd", text, false},
		"zstd with too wide a window": {"zstd", wide(t, text), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 3 { // decoders are used again
				got, err := decoders[tt.encoding](bytes.NewReader(tt.body), 1<<20)
				if !tt.ok {
					require.Error(t, err)
					continue
				}
				require.NoError(t, err)
				require.True(t, bytes.Equal(got, text) || len(got) == 0)
			}
		})
	}
}

// HDR-03c: two fields are one list, which is refused and not half decoded.
func TestEncodingGivenTwice(t *testing.T) {
	t.Parallel()
	for _, second := range []string{"gzip", "identity", "foo"} {
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.Add("Content-Encoding", "gzip")
		ctx.Request.Header.Add("Content-Encoding", second)
		_, err := Read(&ctx, 100)
		require.Equal(t, http.StatusUnsupportedMediaType, fault.From(err).Status(), second)
	}
}

// HDR-03d: a small body that becomes a huge one is stopped at the limit.
func TestDecompressionBombs(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	zeros := make([]byte, 256<<20)
	for encoding, bomb := range map[string][]byte{"gzip": gzipped(t, zeros), "zstd": zstandard(t, zeros)} {
		src := &counter{r: bytes.NewReader(bomb)}
		_, err := decoders[encoding](src, limit)
		require.Equal(t, http.StatusRequestEntityTooLarge, fault.From(err).Status(), encoding)
		require.LessOrEqual(t, src.n, len(bomb))
		// The decoder is fine afterwards.
		got, err := decoders[encoding](bytes.NewReader(map[string][]byte{"gzip": gzipped(t, []byte("x")), "zstd": zstandard(t, []byte("x"))}[encoding]), limit)
		require.NoError(t, err)
		require.Equal(t, "x", string(got))
	}
}

// Whatever bytes come, decoding ends and keeps the limit.
func FuzzDecoders(f *testing.F) {
	f.Add("gzip", gzipped(f, []byte("text")))
	f.Add("zstd", zstandard(f, []byte("text")))
	f.Add("gzip", []byte{0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3, 0xff, 0xff})
	f.Add("zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x38, 0x39, 0xc9, 1, 0})
	f.Fuzz(func(t *testing.T, encoding string, body []byte) {
		decode := decoders[encoding]
		if decode == nil {
			return
		}
		const limit = 64 << 10
		got, err := decode(bytes.NewReader(body), limit)
		if err == nil {
			require.LessOrEqual(t, len(got), limit)
		}
	})
}

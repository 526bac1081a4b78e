package extract

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// whatever bytes and labels a page has, it becomes UTF-8 of a bounded length, and UTF-8 that says so stays what it is.
func FuzzDecode(f *testing.F) {
	for _, label := range []string{"", "text/html; charset=utf-8", "text/html; charset=euc-kr", "text/html; charset=utf-7", "text/plain; charset=\"x\\", "text/html; charset=replacement", "text/html; charset=iso-2022-kr"} {
		f.Add([]byte("<meta charset=windows-1252>\xc7\xd1\xb1\xb9\xbe\xee"), label)
		f.Add([]byte("\xff\xfea\x00b"), label)
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		text := decode(body, contentType)
		require.True(t, utf8.ValidString(text))
		require.LessOrEqual(t, len(text), 3*len(body)+3)
	})
}

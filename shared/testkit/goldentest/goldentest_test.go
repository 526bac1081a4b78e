package goldentest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder notes failures instead of ending the test.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true }

func TestCompare(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "file.txt")
	check := func(got string, write bool) bool {
		r := &recorder{TB: t}
		compare(r, path, []byte(got), write)
		return !r.failed
	}
	require.False(t, check("a\nb\n", false), "the file does not exist")
	require.True(t, check("a\nb\n", true))
	require.True(t, check("a\nb\n", false))
	require.False(t, check("a\nc\n", false))
}

func TestFirstDifference(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		want, got string
		line      int
		same      bool
	}{
		"equal":          {"a\nb", "a\nb", 0, true},
		"a line changed": {"a\nb\n", "a\nc\n", 2, false},
		"a line more":    {"a\n", "a\nb\n", 2, false},
		"a line less":    {"a\nb\n", "a\n", 2, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, same := firstDifference([]byte(tt.want), []byte(tt.got))
			require.Equal(t, tt.line, line)
			require.Equal(t, tt.same, same)
		})
	}
}

// Package goldentest compares what a test produced with a file under testdata. "go test -update" writes the files anew.
package goldentest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// Compare fails the test when got differs from testdata/<name> of the package under test.
func Compare(tb testing.TB, name string, got []byte) {
	tb.Helper()
	compare(tb, filepath.Join("testdata", name), got, *update)
}

func compare(tb testing.TB, path string, got []byte, write bool) {
	tb.Helper()
	if write {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			tb.Fatalf("creating the directory of a golden file: %v", err)
		}
		if err := os.WriteFile(path, got, 0o600); err != nil {
			tb.Fatalf("writing a golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatalf("reading a golden file (run with -update to create it): %v", err)
	}
	if line, ok := firstDifference(want, got); !ok {
		tb.Errorf("%s differs from line %d on (run with -update after a change on purpose)\nwant:\n%s\ngot:\n%s", path, line, want, got)
	}
}

// firstDifference gives the number of the first line that differs.
func firstDifference(want, got []byte) (line int, same bool) {
	if bytes.Equal(want, got) {
		return 0, true
	}
	a, b := bytes.SplitAfter(want, []byte("\n")), bytes.SplitAfter(got, []byte("\n"))
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			return i + 1, false
		}
	}
	return min(len(a), len(b)) + 1, false
}

package movein

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const stray = "zz_nobody_knows_this"

// plant puts a key that no importer knows into every mapping, and gives their number.
func plant(v *value) (planted []*value) {
	for _, k := range v.keys {
		planted = append(planted, plant(v.fields[k])...)
	}
	for _, item := range v.items {
		planted = append(planted, plant(item)...)
	}
	if v.shape == mapping {
		leaf := &value{shape: number, scalar: "7", path: under(v.path, stray), file: v.file, line: v.line}
		v.put(stray, leaf)
		planted = append(planted, leaf)
	}
	return planted
}

// covered says whether a finding is about a value, or about what it is in.
func covered(v *value, all []Finding) bool {
	for _, f := range all {
		if rest, below := strings.CutPrefix(v.path, f.Path); below && !f.Taken && f.File == v.file && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

func leaves(v *value) (all []*value) {
	if v.leaf() {
		return []*value{v}
	}
	for _, k := range v.keys {
		all = append(all, leaves(v.fields[k])...)
	}
	for _, item := range v.items {
		all = append(all, leaves(item)...)
	}
	return all
}

// whatever key is put wherever into a source, it is listed, unless it is in the result: bodies of requests, headers and names are free.
// And each value of the source is taken, or listed.
func TestNothingIsForgotten(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/[0-9]*")
	require.NoError(t, err)
	for _, file := range files {
		if strings.Contains(file, ".golden.") || strings.Contains(file, "6-more") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			for _, planting := range []bool{false, true} {
				data, err := os.ReadFile(file)
				require.NoError(t, err)
				root, err := parse("f", data)
				require.NoError(t, err)
				f, err := choose(root, Source{Name: "f", Format: filepath.Base(filepath.Dir(file))})
				require.NoError(t, err)
				var planted []*value
				if planting {
					planted = plant(root)
					require.NotEmpty(t, planted)
				}
				b := newBuilder(root, f.ref)
				require.NoError(t, f.read(b))
				text, err := b.encode()
				require.NoError(t, err)
				all := root.findings()
				for _, leaf := range leaves(root) {
					if !leaf.taken && !leaf.stands(reason{}) {
						require.Truef(t, covered(leaf, all), "%s is neither taken nor listed", leaf.path)
					}
				}
				inResult := strings.Contains(strings.ToLower(string(text)), strings.ToLower(stray)) || strings.Contains(string(text), strings.ToUpper(stray))
				for _, leaf := range planted {
					if !covered(leaf, all) {
						require.Truef(t, leaf.taken && inResult, "%s is neither listed nor in the result", leaf.path)
					}
				}
			}
		})
	}
}

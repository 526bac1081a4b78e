package movein_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/movein"
	"hydrallm/shared/testkit/goldentest"
)

// madeUp marks everything in the sources that is a secret.
var madeUp = regexp.MustCompile(`[Mm]ade[-_]up[-_]?[a-z0-9-]*|AKIAMADEUP0000`)

// each source has the result, and the list of what is not taken, that stand beside it. Import itself has the result checked.
func TestImport(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/[0-9]*-*.*")
	require.NoError(t, err)
	count := map[string]int{}
	for _, file := range files {
		format, name := filepath.Base(filepath.Dir(file)), filepath.Base(file)
		if strings.Contains(name, ".golden.") || name == "6-more.yaml" {
			continue
		}
		count[format]++
		t.Run(format+"/"+name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			r, err := movein.Import(movein.Source{Name: name, Data: data, Read: func(name string) ([]byte, error) {
				if name != "6-more.yaml" {
					return nil, errors.New("no such file")
				}
				return os.ReadFile(filepath.Join(filepath.Dir(file), name))
			}})
			require.NoError(t, err)
			require.Equal(t, format, r.Format)
			base := format + "/" + strings.TrimSuffix(name, filepath.Ext(name))
			goldentest.Compare(t, base+".golden.yaml", r.Config)
			goldentest.Compare(t, base+".golden.txt", []byte(r.Report()))
			for _, secret := range secrets(string(data)) {
				require.NotContains(t, string(r.Config)+r.Report(), secret)
			}
		})
	}
	require.Equal(t, map[string]int{"litellm": 8, "bifrost": 5, "olla": 4, "gpt-load": 3}, count)
}

// secrets gives what must not be in a result. Made up names of hosts and accounts may.
func secrets(source string) []string {
	var found []string
	for _, s := range madeUp.FindAllString(source, -1) {
		switch s {
		case "made-up", "made-up-eu", "made-up-us":
		default:
			found = append(found, s)
		}
	}
	return found
}

package movein

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// oddities are values that hardly any place expects.
var oddities = []value{
	{shape: text},
	{shape: text, scalar: "${"},
	{shape: text, scalar: "${NAME} x"},
	{shape: text, scalar: "a\x01b\nc"},
	{shape: text, scalar: "\u200bx"},
	{shape: text, scalar: strings.Repeat("y", 3000)},
	{shape: text, scalar: "https://u:p@h:1/x?q=1#f"},
	{shape: text, scalar: "http://[::1"},
	{shape: text, scalar: "os.environ/"},
	{shape: text, scalar: "env.X Y"},
	{shape: text, scalar: "auto"},
	{shape: text, scalar: "openai/*"},
	{shape: text, scalar: "*"},
	{shape: text, scalar: "ollama"},
	{shape: number, scalar: "-1"},
	{shape: number, scalar: "1e300"},
	{shape: number, scalar: ".inf"},
	{shape: number, scalar: "0"},
	{shape: number, scalar: "7"},
	{shape: number, scalar: "0x1F"},
	{shape: boolean, scalar: "true"},
	{shape: nothing},
	{shape: list},
	{shape: mapping},
	{shape: list, items: []*value{{shape: text, scalar: "x"}}},
	{shape: mapping, keys: []string{"a"}, fields: map[string]*value{"a": {shape: text, scalar: "x"}}},
}

// whatever a value is, the result passes the check, or there is none. A part of all is tried; MOVEIN_ALL=1 tries all, which takes minutes.
func TestOddValues(t *testing.T) {
	t.Parallel()
	every := 151
	if all := os.Getenv("MOVEIN_ALL"); all != "" {
		every = 1
	}
	files, err := filepath.Glob("testdata/*/[0-9]*")
	require.NoError(t, err)
	for i, file := range files {
		if strings.Contains(file, ".golden.") || strings.Contains(file, "6-more") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			format := filepath.Base(filepath.Dir(file))
			at := i
			for n := 0; ; n++ {
				root, err := parse("f", data)
				require.NoError(t, err)
				places := everything(root)
				if n == len(places) {
					return
				}
				for o := range oddities {
					if at++; at%every != 0 {
						continue
					}
					root, err := parse("f", data)
					require.NoError(t, err)
					place := everything(root)[n]
					odd := copyOf(&oddities[o])
					odd.path, odd.file, odd.line = place.path, place.file, place.line
					*place = *odd
					_, err = take(root, Source{Name: "f", Format: format})
					if err != nil {
						require.NotContains(t, err.Error(), "does not pass the check", place.path+" is "+strconv.Itoa(o))
					}
				}
			}
		})
	}
}

// everything gives all values below a root.
func everything(v *value) (all []*value) {
	for _, k := range v.keys {
		all = append(append(all, v.fields[k]), everything(v.fields[k])...)
	}
	for _, item := range v.items {
		all = append(append(all, item), everything(item)...)
	}
	return all
}

func copyOf(v *value) *value {
	c := *v
	c.items, c.fields = nil, nil
	for _, item := range v.items {
		c.items = append(c.items, copyOf(item))
	}
	if v.shape == mapping {
		c.fields = map[string]*value{}
		for k, f := range v.fields {
			c.fields[k] = copyOf(f)
		}
	}
	return &c
}

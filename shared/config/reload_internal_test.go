package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// each setting that is no entry of a list can be compared, so that a change of none goes unnoticed.
func TestEachSettingCanBeCompared(t *testing.T) {
	t.Parallel()
	var walk func(below string, all []setting)
	walk = func(below string, all []setting) {
		for _, s := range all {
			path := join(below, s.key)
			if s.kind.list {
				continue
			}
			require.True(t, s.kind.at != nil || len(s.kind.fields) > 0, path)
			walk(path, s.kind.fields)
		}
	}
	walk("", newDocument("", "", newFindings("")).settings())
}

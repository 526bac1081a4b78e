package routing_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/analyzer/internal/routing"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
)

// a catalogue name matches exactly or not at all.
func TestDecide(t *testing.T) {
	t.Parallel()
	c := routing.NewCatalogue("my-gpt", "prov/ns/name:tag", "имя")
	tests := map[string]struct {
		model string
		found bool
	}{
		"a name":                   {"my-gpt", true},
		"a name with slashes":      {"prov/ns/name:tag", true},
		"a name beyond ASCII":      {"имя", true},
		"case counts":              {"My-GPT", false},
		"spaces count":             {"my-gpt ", false},
		"a part is not the name":   {"my", false},
		"the end is not the name":  {"name:tag", false},
		"none":                     {"", false},
		"something else entirely":  {"gpt-4o", false},
		"a name with a line break": {"my-gpt\n", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := c.Decide(tt.model)
			if tt.found {
				require.NoError(t, err)
				require.Equal(t, contract.Decision{Model: tt.model, Reason: contract.ReasonModelHint, Strict: true, Catalogue: true}, d)
				return
			}
			f := fault.From(err)
			require.Equal(t, fault.ModelNotFound, f.Kind)
			require.Equal(t, "model", f.Param)
			require.Contains(t, f.Message, "`"+tt.model+"`")
		})
	}
}

func TestLongNamesAreCut(t *testing.T) {
	t.Parallel()
	_, err := routing.NewCatalogue().Decide(strings.Repeat("й", 1<<20))
	require.Less(t, len(fault.From(err).Message), 1000)
}

// the decision depends on the name and the catalogue only, not on order or on what was asked before.
func FuzzDecideIsPure(f *testing.F) {
	f.Add("a", "b", "a")
	f.Add("", "", "")
	f.Add("x/y", "x", "y")
	f.Fuzz(func(t *testing.T, first, second, asked string) {
		c, reversed := routing.NewCatalogue(first, second), routing.NewCatalogue(second, first)
		d1, err1 := c.Decide(asked)
		_, _ = c.Decide(second)
		d2, err2 := c.Decide(asked)
		d3, err3 := reversed.Decide(asked)
		require.Equal(t, d1, d2)
		require.Equal(t, d1, d3)
		require.Equal(t, err1, err2)
		require.Equal(t, err1, err3)
		require.Equal(t, asked == first || asked == second, err1 == nil)
	})
}

func BenchmarkDecide(b *testing.B) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = strings.Repeat("x", i%50) + "model"
	}
	c := routing.NewCatalogue(names...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Decide("xxxmodel"); err != nil {
			b.Fatal(err)
		}
	}
}

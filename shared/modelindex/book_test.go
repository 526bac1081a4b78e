package modelindex_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

func listing(provider string, models ...modelindex.Model) modelindex.Listing {
	return modelindex.Listing{Provider: provider, Models: models}
}

func TestLookups(t *testing.T) {
	t.Parallel()
	b := modelindex.NewBook(
		listing("groq", modelindex.Model{ID: "llama"}),
		listing("ollama", modelindex.Model{ID: "llama"}, modelindex.Model{ID: "Qwen"}),
		listing("groq", modelindex.Model{ID: "llama", Window: 8192}, modelindex.Model{ID: "llama"}, modelindex.Model{ID: "gpt-oss"}),
		listing("empty"),
	)
	require.Equal(t, []string{"groq", "ollama"}, b.Providers("llama"))
	require.Equal(t, []string{"ollama"}, b.Providers("Qwen"))
	require.Empty(t, b.Providers("qwen"), "ids are taken as they are (B-14)")
	m, ok := b.Find("groq", "llama")
	require.True(t, ok)
	require.Equal(t, 8192, m.Window, "the later listing counts, and the first of equal ids")
	for _, at := range [][2]string{{"groq", "Qwen"}, {"groq", "x"}, {"x", "llama"}, {"empty", "llama"}} {
		_, ok = b.Find(at[0], at[1])
		require.False(t, ok, at)
	}
	l, ok := b.Listing("empty")
	require.True(t, ok)
	require.Empty(t, l.Models)
	_, ok = b.Listing("x")
	require.False(t, ok)
}

// A book that was never filled answers as well.
func TestZeroBook(t *testing.T) {
	t.Parallel()
	var b modelindex.Book
	require.Empty(t, b.Providers("m"))
	_, ok := b.Find("p", "m")
	require.False(t, ok)
	_, ok = b.Default("p", modelindex.Defaults{}, true, nil)
	require.False(t, ok)
	m, ok := b.Default("p", modelindex.Defaults{Free: "f"}, false, nil)
	require.True(t, ok)
	require.Equal(t, "f", m.ID)
}

// C-43: the model of a provider for a request that names none.
func TestDefault(t *testing.T) {
	t.Parallel()
	free, standard := modelindex.Model{ID: "free", Tier: contract.TierFree, Window: 8192}, modelindex.Model{ID: "standard", Tier: contract.TierStandard}
	premium, premium2 := modelindex.Model{ID: "pro", Tier: contract.TierPremium}, modelindex.Model{ID: "pro-2", Tier: contract.TierPremium}
	vectors := modelindex.Model{ID: "embed", Tier: contract.TierFree, Embedding: true}
	all := []modelindex.Model{premium, vectors, standard, free, premium2}
	named := modelindex.Defaults{Free: "free", Premium: "pro-2"}
	gone := modelindex.Defaults{Free: "gemini-1.5-flash", Premium: "gemini-1.5-pro"}
	for name, tt := range map[string]struct {
		models     []modelindex.Model // nil: discovery has not answered
		defaults   modelindex.Defaults
		premium    bool
		refused    []string
		want, tier string // "": nothing is known
	}{
		"named free":                          {all, named, false, nil, "free", contract.TierFree},
		"named premium":                       {all, named, true, nil, "pro-2", contract.TierPremium},
		"named premium, refused":              {all, named, true, []string{"pro-2"}, "free", contract.TierFree},
		"both refused, premium":               {all, named, true, []string{"pro-2", "free"}, "pro", contract.TierPremium},
		"both refused, no premium key":        {all, named, false, []string{"pro-2", "free"}, "standard", contract.TierStandard},
		"only a free one named, premium key":  {all, modelindex.Defaults{Free: "free"}, true, nil, "free", contract.TierFree},
		"only premium named, no premium key":  {all, modelindex.Defaults{Premium: "pro-2"}, false, nil, "standard", contract.TierStandard},
		"none named":                          {all, modelindex.Defaults{}, false, nil, "standard", contract.TierStandard},
		"none named, premium key":             {all, modelindex.Defaults{}, true, nil, "pro", contract.TierPremium},
		"retired names":                       {all, gone, false, nil, "standard", contract.TierStandard},
		"retired names, premium key":          {all, gone, true, nil, "pro", contract.TierPremium},
		"only premium models, no premium key": {[]modelindex.Model{vectors, premium}, gone, false, nil, "pro", contract.TierPremium},
		"no premium model, premium key":       {[]modelindex.Model{vectors, free}, gone, true, nil, "free", contract.TierFree},
		"only vectors":                        {[]modelindex.Model{vectors}, gone, false, nil, "", ""},
		"all refused":                         {[]modelindex.Model{free}, named, true, []string{"free", "pro-2"}, "", ""},
		"not discovered":                      {nil, named, false, nil, "free", contract.TierFree},
		"not discovered, premium key":         {nil, named, true, nil, "pro-2", contract.TierPremium},
		"not discovered, one name for both":   {nil, modelindex.Defaults{Free: "x", Premium: "x"}, true, nil, "x", contract.TierFree},
		"not discovered, refused":             {nil, named, true, []string{"pro-2"}, "free", contract.TierFree},
		"not discovered, all refused":         {nil, named, true, []string{"pro-2", "free"}, "", ""},
		"not discovered, none named":          {nil, modelindex.Defaults{}, true, nil, "", ""},
		"nothing offered":                     {[]modelindex.Model{}, named, false, nil, "free", contract.TierFree},
		"nothing offered, none named":         {[]modelindex.Model{}, modelindex.Defaults{}, false, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := modelindex.NewBook(listing("other", modelindex.Model{ID: "elsewhere"}))
			if tt.models != nil {
				b = modelindex.NewBook(listing("p", tt.models...), listing("other", modelindex.Model{ID: "elsewhere"}))
			}
			got, ok := b.Default("p", tt.defaults, tt.premium, func(m modelindex.Model) bool { return slices.Contains(tt.refused, m.ID) })
			require.Equal(t, tt.want != "", ok)
			require.Equal(t, tt.want, got.ID)
			require.Equal(t, tt.tier, got.Tier)
			if ok && tt.refused == nil {
				same, _ := b.Default("p", tt.defaults, tt.premium, nil)
				require.Equal(t, got, same)
			}
		})
	}
}

package modellist

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

type listed struct {
	Object string
	Data   []Model
}

func read(t *testing.T, l *List) listed {
	t.Helper()
	var all listed
	require.NoError(t, json.Unmarshal(l.Now().All(), &all), "%s", l.Now().All())
	require.Equal(t, "list", all.Object)
	for _, m := range all.Data { // each can be fetched alone
		body, ok := l.Now().Find(m.ID)
		require.True(t, ok, m.ID)
		var one Model
		require.NoError(t, json.Unmarshal(body, &one))
		require.Equal(t, m, one)
		require.Equal(t, "model", m.Object)
		require.Positive(t, m.Created)
		require.NotEmpty(t, m.OwnedBy)
		require.NotEmpty(t, m.DisplayName)
		require.NotEmpty(t, m.Tier)
	}
	return all
}

func (l listed) ids() []string {
	ids := []string{}
	for _, m := range l.Data {
		ids = append(ids, m.ID)
	}
	return ids
}

func (l listed) model(t *testing.T, id string) Model {
	t.Helper()
	i := slices.IndexFunc(l.Data, func(m Model) bool { return m.ID == id })
	require.GreaterOrEqual(t, i, 0, "%s is not listed", id)
	return l.Data[i]
}

// nothing but the configuration, when that is all there is.
func TestConfiguredOnly(t *testing.T) {
	t.Parallel()
	now := time.Now()
	require.Equal(t, `{"object":"list","data":[]}`, string(New(nil, nil, nil, now).Now().All())) // URL-04
	l := New([]Model{{ID: "m", OwnedBy: "x"}, {ID: "n", OwnedBy: "y"}, {ID: "m", OwnedBy: "z"}}, nil, nil, now)
	l.Update(modelindex.NewBook(modelindex.Listing{Provider: "p", Models: []modelindex.Model{{ID: "a"}}}))
	all := read(t, l)
	require.Equal(t, []string{"m", "n"}, all.ids())
	require.Equal(t, "x", all.Data[0].OwnedBy)
	_, ok := l.Now().Find("auto")
	require.False(t, ok)
}

var providers = []Provider{
	{ID: "gemini"},
	{ID: "groq"},
	{ID: "cerebras"},
	{ID: "vendor", Defaults: modelindex.Defaults{Free: "ns/default"}},
	{ID: "ollama", Agent: true},
	{ID: "second-box", Agent: true},
}

var everybody = []string{"gemini", "groq", "cerebras", "vendor", "ollama", "second-box"}

//
func TestVirtualModels(t *testing.T) {
	t.Parallel()
	all := read(t, New(nil, providers, everybody, time.Now()))
	require.Equal(t, []string{
		"auto", "gemini/auto", "groq/auto", "cerebras/auto", "vendor/auto", "LOCAL-AGENT/OLLAMA/auto", "LOCAL-AGENT/SECOND-BOX/auto",
	}, all.ids())
	for id, owner := range map[string]string{
		"auto": "hydrallm", "gemini/auto": "gemini", "groq/auto": "groq", "vendor/auto": "vendor", "LOCAL-AGENT/OLLAMA/auto": "local-agent",
	} {
		m := all.model(t, id)
		require.Equal(t, owner, m.OwnedBy, id)
		require.Equal(t, Capabilities{}, m.Capabilities, "nothing is known yet")
	}
	require.NotContains(t, read(t, New(nil, providers, nil, time.Now())).ids(), "auto", "nobody would answer")
}

// what automatic routing can is what its providers can.
func TestCapabilitiesOfAutomatic(t *testing.T) {
	t.Parallel()
	l := New(nil, providers, []string{"groq", "vendor", "ollama"}, time.Now())
	l.Update(modelindex.NewBook(
		modelindex.Listing{Provider: "groq", Models: []modelindex.Model{{ID: "small", Window: 8192}, {ID: "large", Window: 65536}, {ID: "sees", Window: 1, Can: contract.FeatureImages}}},
		modelindex.Listing{Provider: "vendor", Models: []modelindex.Model{{ID: "other", Window: 4096}, {ID: "ns/default", Window: 32768}}},
		modelindex.Listing{Provider: "gemini", Models: []modelindex.Model{{ID: "huge", Window: 2_000_000, Cannot: contract.FeatureImages}, {ID: "vectors", Embedding: true}}},
	))
	all := read(t, l)
	require.Equal(t, Capabilities{MaxTokens: new(32768), Multimodal: new(true)}, all.model(t, "auto").Capabilities, "Gemini does not take part")
	require.Equal(t, Capabilities{MaxTokens: new(8192), Multimodal: new(true)}, all.model(t, "groq/auto").Capabilities)
	require.Equal(t, Capabilities{MaxTokens: new(32768)}, all.model(t, "vendor/auto").Capabilities)
	require.Equal(t, Capabilities{MaxTokens: new(2_000_000), Multimodal: new(false)}, all.model(t, "gemini/auto").Capabilities)
	require.Equal(t, Capabilities{}, all.model(t, "cerebras/auto").Capabilities)
}

// what discovery found has ids that route to it.
func TestDiscoveredModels(t *testing.T) {
	t.Parallel()
	l := New([]Model{{ID: "vendor/ns/b:tag", OwnedBy: "hydrallm", Tier: "standard"}}, providers, everybody, time.Now())
	book := modelindex.NewBook(
		modelindex.Listing{Provider: "vendor", Models: []modelindex.Model{
			{ID: "ns/b:tag", Tier: "free"},
			{ID: "ns/default", Name: "The Default", Tier: "premium", Window: 4096, Can: contract.FeatureImages},
			{ID: "auto", Tier: "free"},
			{ID: "emb", Embedding: true},
			{ID: "emb", Name: "again"},
		}},
		modelindex.Listing{Provider: "ollama", Models: []modelindex.Model{{ID: "Qwen3:8b", Tier: "free", Window: 8192}}},
		modelindex.Listing{Provider: "stranger", Models: []modelindex.Model{{ID: "x"}}},
	)
	l.Update(book)
	all := read(t, l)
	require.Equal(t, []string{
		"vendor/ns/b:tag", "auto", "gemini/auto", "groq/auto", "cerebras/auto", "vendor/auto", "LOCAL-AGENT/OLLAMA/auto",
		"LOCAL-AGENT/SECOND-BOX/auto", "vendor/ns/default", "vendor/emb", "LOCAL-AGENT/OLLAMA/Qwen3:8b",
	}, all.ids())
	require.Equal(t, "standard", all.Data[0].Tier, "the configuration wins")

	m := all.model(t, "vendor/ns/default")
	require.Equal(t, "vendor", m.OwnedBy)
	require.Equal(t, "The Default", m.DisplayName)
	require.Equal(t, "premium", m.Tier)
	require.Equal(t, Capabilities{MaxTokens: new(4096), Multimodal: new(true)}, m.Capabilities)
	require.Equal(t, m.Capabilities, all.model(t, "vendor/auto").Capabilities, "that is the model it stands for")

	m = all.model(t, "LOCAL-AGENT/OLLAMA/Qwen3:8b")
	require.Equal(t, "local-agent", m.OwnedBy)
	require.Equal(t, "Qwen3:8b", m.DisplayName)
	require.Equal(t, Capabilities{MaxTokens: new(8192)}, m.Capabilities)
	require.Equal(t, "For embeddings", all.model(t, "vendor/emb").Description)

	l.Update(modelindex.NewBook())
	require.Len(t, read(t, l).Data, 8, "what is gone is gone")
}

func thousands(n int) *modelindex.Book {
	var models []modelindex.Model
	for i := range n {
		models = append(models, modelindex.Model{ID: fmt.Sprintf("namespace/model-%d:free", i), Name: "Some Model", Tier: "free", Window: 131072})
	}
	return modelindex.NewBook(modelindex.Listing{Provider: "vendor", Models: models})
}

func TestThousandsOfModels(t *testing.T) {
	t.Parallel()
	l := New(nil, providers, everybody, time.Now())
	l.Update(thousands(5000))
	var all listed
	require.NoError(t, json.Unmarshal(l.Now().All(), &all))
	require.Len(t, all.Data, 5007)
	first := l.Now().All()
	require.Same(t, &first[0], &l.Now().All()[0], "asking encodes nothing")
}

func BenchmarkUpdate(b *testing.B) {
	l, book := New(nil, providers, everybody, time.Now()), thousands(5000)
	b.ReportAllocs()
	for b.Loop() {
		l.Update(book)
	}
}

package discover_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/shared/testkit/fixtures"
)

// Whatever a provider sends: no panic, and a listing that can be used or an error.
func FuzzList(f *testing.F) {
	for _, s := range fixtures.All() {
		if strings.Contains(s.File, "/models") || s.Provider() == "ollama" && s.Kind() == "json" || s.File == "llamacpp/props.json" {
			f.Add(s.Status, string(s.Body))
		}
	}
	f.Add(200, `{"providers":[{"id":"a.*","models":{"x|@this":{"id":1}}}],"default":{"a.*":"x"},"all":[{}],"connected":[1]}`)
	f.Add(200, `{"models":[{"name":"a"}],"model_info":{"general.architecture":"a*.#|@pretty","x":1},"capabilities":["a"],"nextPageToken":"a&b"}`)
	f.Add(200, `{"data":[{"id":"a","context_length":1e300,"max_completion_tokens":"-3","owned_by":"llamacpp","aliases":{"x":"y"}}],"has_more":true,"last_id":"?"}`)
	sources := []discover.Source{
		{Dialect: "openai", URL: "http://h/v1"},
		{Dialect: "gemini", URL: "http://h"},
		{Dialect: "anthropic", URL: "http://h"},
		{Dialect: "ollama", URL: "http://h/v1"},
		{Dialect: "opencode", URL: "http://h"},
		{Vendor: "lmstudio", Dialect: "openai", URL: "http://h/v1"},
		{Vendor: "gemini", Dialect: "openai", URL: "http://h/openai"},
		{Vendor: "openrouter", Dialect: "openai", URL: "http://h/v1"},
		{Vendor: "cerebras", Dialect: "openai", URL: "http://h/v1"},
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 999 {
			return
		}
		for _, s := range sources {
			found, err := discover.List(t.Context(), say(status, body), s, "k")
			if err != nil {
				var refused *discover.RefusedError
				require.ErrorAs(t, err, &refused)
				require.True(t, refused.Verdict.Failed())
				continue
			}
			require.Equal(t, 2, status/100)
			require.NotNil(t, found)
			unique := map[string]bool{}
			for _, m := range found {
				require.False(t, unique[m.ID], "%q twice", m.ID)
				unique[m.ID] = true
				require.NotEmpty(t, strings.TrimSpace(m.ID))
				require.True(t, utf8.ValidString(m.ID+m.Name))
				require.Negative(t, strings.IndexFunc(m.ID+m.Name, unicode.IsControl))
				require.GreaterOrEqual(t, m.Window, 0)
				require.GreaterOrEqual(t, m.Output, 0)
			}
			require.LessOrEqual(t, len(discover.Classify(found, s.Rules([]string{"a"}, nil))), len(found))
			discover.Preferred(found, "llama3")
		}
	})
}

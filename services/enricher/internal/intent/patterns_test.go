package intent

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/output"
)

// a directory replaces what is built in; what can't be used is left out with a warning that names it.
func TestPatternFiles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		ko, en     string // "" for no file
		text, why  string
		log, noLog string
	}{
		{"own pattern", "", `{"include":[{"id":"tide","desc":"","pattern":"ferry TIMES?"}]}`, "Ferry time, what is it", "regex:en:tide", "", "WARN"},
		{"built-in ones are replaced", "", `{"include":[]}`, "please look up the tide", "none", "", "WARN"},
		{"exclude of the other language", `{"exclude":[{"id":"x","pattern":"말고"}]}`, `{"include":[{"id":"i","pattern":"tide"}]}`, "tide 말고 다른 것", "none", "", ""},
		{
			"one is broken", "", `{"include":[{"id":"look","pattern":"(?=tide)"},{"id":"good","pattern":"tide"}]}`, "the tide is high",
			"regex:en:good", "id=look", "id=good",
		},
		{"an empty one", "", `{"include":[{"id":"all","pattern":""}]}`, "the tide is high", "none", "id=all", ""},
		{"one that is too large", "", `{"include":[{"id":"big","pattern":"` + strings.Repeat("a", maxPattern+1) + `"}]}`, "the tide is high", "none", "id=big", ""},
		{"no JSON", "", `{"include":[`, "please look up the tide", "none", "web_patterns.en.json", ""},
		{"one file of two is broken", `[]`, `{"include":[{"id":"i","pattern":"tide"}]}`, "the tide is high", "regex:en:i", "web_patterns.ko.json", ""},
		{"mark of the encoding", "", "\ufeff" + `{"include":[{"id":"i","pattern":"tide"}]}`, "the tide is high", "regex:en:i", "", "WARN"},
		{"no file", "", "", "please look up the tide", "none", "", "WARN"},
		{"a sentence at a time", "", `{"include":[{"id":"i","pattern":"^tide$"}]}`, "what is it? tide\nor not", "regex:en:i", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := settings()
			cfg.PatternsDir = t.TempDir()
			for lang, text := range map[string]string{"ko": tt.ko, "en": tt.en} {
				if text != "" {
					require.NoError(t, os.WriteFile(filepath.Join(cfg.PatternsDir, "web_patterns."+lang+".json"), []byte(text), 0o600))
				}
			}
			var log output.Buffer
			c, err := New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
			require.NoError(t, err)
			require.Equal(t, tt.why, c.NeedsWeb(t.Context(), tt.text).Why)
			require.Contains(t, log.String(), tt.log)
			if tt.noLog != "" {
				require.NotContains(t, log.String(), tt.noLog)
			}
		})
	}
}

// each pattern that is built in can be used, has a name of its own, says what it is for, and is tried only where it may match.
func TestBuiltInPatterns(t *testing.T) {
	t.Parallel()
	var log output.Buffer
	c, err := New(settings(), slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	require.Empty(t, log.String())
	seen := map[string]bool{}
	for _, p := range slices.Concat(c.patterns.include, c.patterns.exclude) {
		require.False(t, seen[p.label], p.label)
		seen[p.label] = p.label != "regex:en:refused" && p.label != "regex:ko:refused"
		require.NotEmpty(t, p.need, p.label)
	}
}

//
func TestLiterals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern string
		want    [][]string
	}{
		{"search", [][]string{{"search"}}},
		{"SEARCH|Google", [][]string{{"search", "google"}}},
		{"search|", nil},
		{"look ?up", [][]string{{"lookup", "look up"}}},
		{"look.*up", [][]string{{"look"}, {"up"}}},
		{"(?:do|run) .+ (?:web|internet)", [][]string{{"do ", "run "}, {" web", " internet"}}},
		{"(?:abc)+", [][]string{{"abc"}}},
		{"(?:abc)*", nil},
		{"(?:abc){2,}", [][]string{{"abc"}, {"abc"}}},
		{"σ", nil},
		{"colou?r[a-c]x", [][]string{{"colorax", "colorbx", "colorcx", "colourax", "colourbx", "colourcx"}}},
		{"[a-z]x", nil},
		{".", nil},
		{"검색 ?해", [][]string{{"검색해", "검색 해"}}},
	}
	for _, tt := range tests {
		tree, err := syntax.Parse("(?i)"+tt.pattern, syntax.Perl)
		require.NoError(t, err)
		require.Equal(t, tt.want, literalsOf(tree.Simplify()), tt.pattern)
	}
}

// literals never keep a pattern from matching.
func FuzzLiterals(f *testing.F) {
	for _, s := range [][2]string{
		{"a(b|c)+d", "xabcbd"}, {"(?:x|yy)?z", "z"}, {"look ?up", "Look up"}, {"[^a]b", "cb"}, {"(?:search|검색)(?:해|ing)", "검색해"}, {"a{0,3}b{2}", "bb"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		if len(source) > 200 || len(text) > 200 {
			return
		}
		p := &patterns{}
		one, err := p.compile("en", patternLine{ID: "f", Pattern: source})
		if err != nil {
			return
		}
		text = fold(text)
		if one.re.MatchString(text) {
			p.finder = newFinder(p.literals)
			require.True(t, p.held(text).allow(one), "%q", p.literals)
		}
	})
}

// No file harms the reader.
func FuzzPatternFile(f *testing.F) {
	for _, s := range []string{`{"include":[{"id":"a","pattern":"b"}]}`, `[]`, `{"include":{}}`, "\ufeff{}", `{"exclude":[{"pattern":"("}]}`, ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		files := fstest.MapFS{"web_patterns.en.json": {Data: data}}
		p := loadPatterns(files, slog.New(slog.DiscardHandler))
		require.LessOrEqual(t, len(p.include)+len(p.exclude), 2*maxPatterns)
		p.find("search for the tide")
	})
}

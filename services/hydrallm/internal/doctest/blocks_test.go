package doctest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/doctest"
)

// what a page says about a block is read, and a block of which it says nothing is one that can be tested.
func TestParse(t *testing.T) {
	t.Parallel()
	const page = "# A\n\n```sh\ncurl x\n\ncurl y\n```\n<!-- untested: no network -->\n```nginx\nlisten 80;\n```\n\n" +
		"1. one\n\n   <!-- file: config.yaml -->\n   ```yaml\n   server:\n     port: 1\n   ```\n\n<!-- server -->\n```sh\nhydrallm\n```\n<!-- another remark -->\n"
	blocks, err := doctest.Parse("a.md", page)
	require.NoError(t, err)
	require.Equal(t, []doctest.Block{
		{File: "a.md", Line: 3, Lang: "sh", Text: "curl x\n\ncurl y\n"},
		{File: "a.md", Line: 9, Lang: "nginx", Text: "listen 80;\n", How: doctest.Untested, Value: "no network"},
		{File: "a.md", Line: 16, Lang: "yaml", Text: "server:\n  port: 1\n", How: doctest.File, Value: "config.yaml"},
		{File: "a.md", Line: 22, Lang: "sh", Text: "hydrallm\n", How: doctest.Server},
	}, blocks)
}

// blocks that would be tested by nothing are found.
func TestParseFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ page, want string }{
		"no language":             {"```\nx\n```\n", "p.md:1: the block has no language"},
		"a language without test": {"```nginx\nx\n```\n", "p.md:1: nothing tests a block of nginx"},
		"no reason":               {"<!-- untested -->\n```sh\nx\n```\n", `p.md:2: "untested" wants a value`},
		"no name":                 {"<!-- file -->\n```sh\nx\n```\n", `p.md:2: "file" wants a value`},
		"a server of yaml":        {"<!-- server -->\n```yaml\nx\n```\n", "p.md:2: a server is a block of sh"},
		"a command as text":       {"```text\nA=1 bin/hydrallm check\n```\n", "p.md:1: this is a command"},
		"no block below":          {"<!-- untested: x -->\n\n```sh\nx\n```\n", "p.md:1: the comment belongs to the line before a block"},
		"no block at the end":     {"<!-- untested: x -->", "p.md:1: the comment belongs to the line before a block"},
		"no end":                  {"```sh\nx\n", "p.md:1: the block has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := doctest.Parse("p.md", tt.page)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("# A\n<!-- untested: x -->\n```sh\nx\n```\n")
	f.Fuzz(func(t *testing.T, page string) {
		blocks, _ := doctest.Parse("p.md", page)
		for _, b := range blocks {
			require.Positive(t, b.Line)
		}
	})
}

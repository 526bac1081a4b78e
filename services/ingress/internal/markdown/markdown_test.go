package markdown_test

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"hydrallm/services/ingress/internal/markdown"
)

// what models write comes as what it means.
func TestRender(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"# One\n\n###### Six":           "<h3>One</h3>\n<h6>Six</h6>\n",
		"> # in a quote":                "<blockquote>\n<h3>in a quote</h3>\n</blockquote>\n",
		"a *b* **c** ~~d~~ `e`":         "<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e</code></p>\n",
		"```go\na < b\n```":             "<pre><code class=\"language-go\">a &lt; b\n</code></pre>\n",
		"3. a\n4. b":                    "<ol start=\"3\">\n<li>a</li>\n<li>b</li>\n</ol>\n",
		"| a |\n|--:|\n| 1 |":           "<table>\n<thead>\n<tr>\n<th align=\"right\">a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"right\">1</td>\n</tr>\n</tbody>\n</table>\n",
		"[x](https://example.org/?a=1)": `<p><a href="https://example.org/?a=1" rel="nofollow noreferrer noopener" target="_blank">x</a></p>` + "\n",
		"한국어 **굵게**":                    "<p>한국어 <strong>굵게</strong></p>\n",
		"":                              "",
	} {
		got, err := markdown.Render([]byte(source))
		require.NoError(t, err)
		require.Equal(t, want, string(got), source)
	}
}

// what would do something is text, or gone.
func TestNothingRuns(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "![x](https://evil.example/pixel.png)", "[x](javascript:alert(1))", "[x](data:text/html,x)",
		"[x](vbscript:x)", "<a href=\"java\nscript:alert(1)\">x</a>", "[x](/v1/admin/logs/clear)", "<style>*{display:none}</style>", "<iframe src=//evil>",
		"<form action=//evil><input name=key></form>", "<svg onload=alert(1)>", "<b style=position:fixed>x</b>", "[x][y]\n\n[y]: javascript:alert(1)",
		"<javascript:alert(1)>", "```\"onload=alert(1)\nx\n```", "[x](https://a \"onmouseover=alert(1)\")", "<h1 id=app>", "[x](//evil.example)",
	} {
		got, err := markdown.Render([]byte(source))
		require.NoError(t, err)
		requireHarmless(t, got)
	}
	_, err := markdown.Render(bytes.Repeat([]byte("a"), markdown.MaxSize+1))
	require.Error(t, err)
}

// text of a model can be anything, and must not take long: what would is shown as it is.
func TestCostlyText(t *testing.T) {
	t.Parallel()
	table := strings.Repeat("|a", 2000) + "\n" + strings.Repeat("|-", 2000) + "\n"
	for name, source := range map[string]string{
		"quotes":            strings.Repeat(">", 100_000),
		"spaced quotes":     strings.Repeat("> ", 100_000),
		"lists":             strings.Repeat("- ", 100_000),
		"numbered lists":    strings.Repeat("1. ", 80_000),
		"mixed":             strings.Repeat("> 1) + ", 30_000),
		"links":             strings.Repeat("[a](", 60_000),
		"brackets":          strings.Repeat("[", 200_000),
		"images":            strings.Repeat("![a", 80_000),
		"references":        strings.Repeat("[a]: x\n", 20_000) + strings.Repeat("[a]", 20_000),
		"code of all sizes": codeSpans(),
		"comments":          strings.Repeat("<!--", 60_000),
		"emphasis":          strings.Repeat("*a_ ", 60_000),
		"addresses":         strings.Repeat("_a", 120_000),
		"struck":            strings.Repeat("~~a", 80_000),
		"rows of a table":   table + strings.Repeat("|\n", 100_000),
		"the same, quoted":  "> x\n" + strings.Repeat("[a](\n> ", 30_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := markdown.Render([]byte(source))
			require.NoError(t, err)
			require.Equal(t, "<pre><code>"+html.EscapeString(source)+"</code></pre>\n", string(got))
			requireHarmless(t, got)
		})
	}
}

func codeSpans() string {
	var b strings.Builder
	for i := range 650 {
		b.WriteString(strings.Repeat("`", i+1) + "a")
	}
	return b.String()
}

// long answers of the usual kind are not costly.
func TestLongText(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"paragraphs": strings.Repeat("Some *words* with `code` and [a link](https://example.org/a_b_c).\n\n", 3500),
		"one list":   strings.Repeat("- **a**: `b`, see [c](https://example.org)\n", 400),
		"a table":    "|a|b|c|\n|-|-|-|\n" + strings.Repeat("|some|more|text|\n", 5000),
		"code":       "```go\n" + strings.Repeat("func (s *store) get_all(keys []string) []int { return nil }\n", 400) + "```\n",
		"a rule":     "a\n\n" + strings.Repeat("-", 500) + "\n\n" + strings.Repeat("*", 500),
		"quotes":     strings.Repeat("> ", 20) + "deep",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := markdown.Render([]byte(source))
			require.NoError(t, err)
			require.NotEqual(t, "<pre><code>"+html.EscapeString(source)+"</code></pre>\n", string(got))
			requireHarmless(t, got)
		})
	}
}

func FuzzRender(f *testing.F) {
	f.Add("# a\n\n[x](https://a) <script>x</script> ![a](b) `c`\n\n| a |\n|---|\n| b |")
	f.Add("[a]: javascript:x\n[a]\n<a href='jAvAsCrIpT&colon;alert(1)'>")
	f.Fuzz(func(t *testing.T, source string) {
		if got, err := markdown.Render([]byte(source)); err == nil {
			requireHarmless(t, got)
		}
	})
}

var allowed = regexp.MustCompile(`^(p|br|hr|h[3-6]|strong|em|del|blockquote|ul|ol|li|pre|code|table|thead|tbody|tr|th|td|a)$`)

func requireHarmless(t *testing.T, page []byte) {
	t.Helper()
	tokens := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			require.ErrorIs(t, tokens.Err(), io.EOF)
			return
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			tag := tokens.Token()
			require.Regexp(t, allowed, tag.Data)
			for _, a := range tag.Attr {
				switch a.Key {
				case "href":
					require.Regexp(t, `^https?://`, a.Val)
				case "class", "align", "start", "rel", "target":
				default:
					require.Fail(t, "attribute", "%s of %s", a.Key, tag.Data)
				}
			}
		case html.TextToken, html.CommentToken, html.DoctypeToken:
		}
	}
}

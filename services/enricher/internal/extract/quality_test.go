package extract

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/korean"
	utf "golang.org/x/text/encoding/unicode"

	"hydrallm/shared/testkit/goldentest"
)

// samplePage is one of those that are under testdata/pages, in UTF-8. data-gold marks the elements whose text is the content, data-not those that must not be kept; the
// extractor does not get to see the marks. The name tells the charset in which a page is served, and a .gold file has the content of what is no HTML.
type samplePage struct {
	name   string
	body   []byte
	header string
	gold   string
	not    []string
}

var marks = regexp.MustCompile(` data-(?:gold|not)\b`)

var served = map[string]encoding.Encoding{
	".euc-kr": korean.EUCKR, ".cp949": korean.EUCKR, ".windows-1252": charmap.Windows1252, ".utf-16": utf.UTF16(utf.LittleEndian, utf.UseBOM),
}

func samplePages(tb testing.TB) []samplePage {
	tb.Helper()
	files, err := filepath.Glob("testdata/pages/*")
	require.NoError(tb, err)
	var pages []samplePage
	for _, file := range files {
		ext := filepath.Ext(file)
		if ext == ".gold" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(tb, err)
		p := samplePage{name: strings.TrimSuffix(filepath.Base(file), ext), header: "text/html"}
		switch ext {
		case ".html":
			p.gold, p.not = marksOf(tb, text)
			p.body = marks.ReplaceAll(text, nil)
			if e := served[filepath.Ext(p.name)]; e != nil {
				p.body, err = e.NewEncoder().Bytes(p.body)
				require.NoError(tb, err)
			}
		default:
			gold, err := os.ReadFile(strings.TrimSuffix(file, ext) + ".gold")
			require.NoError(tb, err)
			p.gold, p.body, p.header = string(gold), text, "application/rss+xml"
		}
		pages = append(pages, p)
	}
	require.GreaterOrEqual(tb, len(pages), 40)
	return pages
}

// marksOf reads the marks of a page.
func marksOf(tb testing.TB, text []byte) (gold string, not []string) {
	tb.Helper()
	root, err := html.Parse(bytes.NewReader(text))
	require.NoError(tb, err)
	var b strings.Builder
	var walk func(n *html.Node, in bool)
	walk = func(n *html.Node, in bool) {
		if n.Type == html.ElementNode {
			if has(n, "data-not") {
				not = append(not, strings.Join(strings.Fields(plain(n)), " "))
				return
			}
			in = in || has(n, "data-gold")
			if n.Data == "template" || n.Data == "script" {
				return
			}
		}
		if n.Type == html.TextNode && in {
			b.WriteString(n.Data)
		}
		for child := range n.ChildNodes() {
			walk(child, in)
		}
		if n.Type == html.ElementNode && isBlock(n) {
			b.WriteByte('\n')
		}
	}
	walk(root, false)
	return b.String(), not
}

var linkTarget = regexp.MustCompile(`\]\([^)\s]*\)`)

var emphasis = strings.NewReplacer("`", "", "*", "", "[", "")

// words splits a text, Markdown or not, into what is compared.
func words(text string) []string {
	text = emphasis.Replace(linkTarget.ReplaceAllString(text, ""))
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// f1 compares texts as bags of words.
func f1(got, want string) float64 {
	g, w := words(got), words(want)
	count := map[string]int{}
	for _, word := range w {
		count[word]++
	}
	same := 0
	for _, word := range g {
		if count[word] > 0 {
			count[word]--
			same++
		}
	}
	if len(g)+len(w) == 0 {
		return 1
	}
	return 2 * float64(same) / float64(len(g)+len(w))
}

// of every page the content is kept, and what is none is not. The whole of what is kept is in a golden file.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, p := range samplePages(t) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			doc, err := Extract(p.body, p.header, "https://example.com/dir/page")
			require.NoError(t, err)
			requireSound(t, doc)
			for _, not := range p.not {
				require.NotContains(t, doc.Text, not)
			}
			day := ""
			if !doc.Published.IsZero() {
				day = doc.Published.Format("2006-01-02")
			}
			goldentest.Compare(t, "golden/"+p.name+".md", []byte("TITLE: "+doc.Title+"\nPUBLISHED: "+day+"\n\n"+doc.Text+"\n"))
			require.GreaterOrEqual(t, f1(doc.Text, p.gold), 0.75)
		})
	}
}

// BenchmarkExtract measures the pages per second, and how well what is kept matches what was meant (F1 of words), beside go-readability and the text
// without tags.
func BenchmarkExtract(b *testing.B) {
	pages := samplePages(b)
	at, _ := url.Parse("https://example.com/dir/page")
	var ours, theirs, strip float64
	for _, p := range pages {
		doc, _ := Extract(p.body, p.header, at.String())
		text := decode(p.body, p.header)
		ours += f1(doc.Text, p.gold)
		theirs += f1(byReadability(text, at), p.gold)
		strip += f1(scan(text, "").plain, p.gold)
	}
	bytes := 0
	for _, p := range pages {
		bytes += len(p.body)
	}
	b.ReportAllocs()
	b.SetBytes(int64(bytes / len(pages)))
	n := 0
	for b.Loop() {
		p := pages[n%len(pages)]
		n++
		_, _ = Extract(p.body, p.header, at.String())
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "pages/s")
	b.ReportMetric(ours/float64(len(pages)), "f1_ours")
	b.ReportMetric(theirs/float64(len(pages)), "f1_readability")
	b.ReportMetric(strip/float64(len(pages)), "f1_strip")
}

func byReadability(text string, at *url.URL) string {
	article, err := readability.FromReader(strings.NewReader(text), at)
	if err != nil || article.Node == nil {
		return ""
	}
	return plain(article.Node)
}

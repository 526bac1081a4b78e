package extract

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"

	"hydrallm/services/enricher/internal/page"
)

const (
	koreanText   = "안녕하세요 반갑습니다 오늘은 날씨가 좋습니다 그리고 이 글은 충분히 길어야 합니다."
	uhcText      = "펲시와 뷁이라는 글자는 확장 완성형에만 있습니다. 이 글은 기본적인 글자와 섞여 충분히 깁니다."
	japaneseText = "こんにちは今日は天気が良いですね。この記事は十分に長くなければなりません。"
	chineseText  = "你好世界，今天天气很好，我们一起去散步，这是一篇文章，内容足够长。"
	taiwanText   = "臺灣的天氣很好，我們一起去散步，這是一篇文章，內容足夠長，請大家閱讀。"
	frenchText   = "Le café est déjà fermé à Besançon, où l'été dernier fut très agréable. Ça va être naïf."
)

func encoded(t *testing.T, e encoding.Encoding, s string) string {
	t.Helper()
	out, err := e.NewEncoder().String(s)
	require.NoError(t, err)
	return out
}

// encodedKR reads bytes of EUC-KR.
func encodedKR(s string) string {
	out, _ := korean.EUCKR.NewDecoder().String(s)
	return out
}

func article(head, text string) string {
	return "<html><head>" + head + "<title>T</title></head><body><article><p>" + text + "</p><p>" + text + "</p></article></body></html>"
}

// whatever the labels say, the text is read as it was written.
func TestCharsets(t *testing.T) {
	t.Parallel()
	kr, sjis, gbk, big5, latin := korean.EUCKR, japanese.ShiftJIS, simplifiedchinese.GBK, traditionalchinese.Big5, charmap.Windows1252
	utf16le, utf16be := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	const meta = `<meta charset="euc-kr">`
	late := "<!--" + strings.Repeat("x", 3000) + "-->" + meta
	tests := map[string]struct {
		header string
		body   string
		want   string
	}{
		"meta":                                 {"text/html", encoded(t, kr, article(meta, koreanText)), koreanText},
		"header ks_c_5601-1987":                {"text/html; charset=ks_c_5601-1987", encoded(t, kr, article("", koreanText)), koreanText},
		"header cp949":                         {"text/html; charset=cp949", encoded(t, kr, article("", uhcText)), uhcText},
		"header ms949 in quotes":               {`text/html; charset="MS949"`, encoded(t, kr, article("", uhcText)), uhcText},
		"header x-windows-949":                 {"text/html;charset=x-windows-949", encoded(t, kr, article("", uhcText)), uhcText},
		"header UHC":                           {"text/html;charset=UHC", encoded(t, kr, article("", uhcText)), uhcText},
		"euc-kr with syllables of 949":         {"text/html", encoded(t, kr, article(`<META http-equiv="Content-Type" content="text/html; charset=euc-kr">`, uhcText)), uhcText},
		"no label, Korean":                     {"text/html", encoded(t, kr, article("", koreanText)), koreanText},
		"no label, Japanese":                   {"text/html", encoded(t, sjis, article("", japaneseText)), japaneseText},
		"no label, EUC-JP":                     {"text/html", encoded(t, japanese.EUCJP, article("", japaneseText)), japaneseText},
		"no label, GBK":                        {"text/html", encoded(t, gbk, article("", chineseText)), chineseText},
		"no label, Big5":                       {"text/html", encoded(t, big5, article("", taiwanText)), taiwanText},
		"no label, Latin":                      {"text/html", encoded(t, latin, article("", frenchText)), frenchText},
		"Shift_JIS":                            {"text/html; charset=Shift_JIS", encoded(t, sjis, article("", japaneseText)), japaneseText},
		"GBK":                                  {"text/html; charset=gbk", encoded(t, gbk, article("", chineseText)), chineseText},
		"ISO-2022-JP":                          {"text/html; charset=iso-2022-jp", encoded(t, japanese.ISO2022JP, article("", japaneseText)), japaneseText},
		"header wins over meta":                {"text/html; charset=euc-kr", encoded(t, kr, article(`<meta charset="shift_jis">`, koreanText)), koreanText},
		"header that does not fit":             {"text/html; charset=iso-8859-1", encoded(t, kr, article(meta, koreanText)), koreanText},
		"header Latin for Korean, no meta":     {"text/html; charset=iso-8859-1", encoded(t, kr, article("", koreanText)), koreanText},
		"UTF-8 labelled Latin":                 {"text/html; charset=iso-8859-1", article("", koreanText), koreanText},
		"UTF-8 labelled Latin, in French":      {"text/html; charset=iso-8859-1", article("", frenchText), frenchText},
		"Latin labelled UTF-8":                 {"text/html; charset=utf-8", encoded(t, latin, article(`<meta charset=utf-8>`, frenchText)), frenchText},
		"Korean labelled UTF-8":                {"text/html; charset=utf-8", encoded(t, kr, article("", koreanText)), koreanText},
		"UTF-8 labelled euc-kr":                {"text/html; charset=euc-kr", article(meta, koreanText), koreanText},
		"UTF-8 labelled with a made-up name":   {"text/html; charset=visual", article("", koreanText), koreanText},
		"two metas, the first without charset": {"text/html", encoded(t, kr, article(`<META http-equiv="Content-Type" content="text/html">`+meta, koreanText)), koreanText},
		"late meta":                            {"text/html", encoded(t, kr, article(late, koreanText)), koreanText},
		"UTF-8 mark, labelled euc-kr":          {"text/html; charset=euc-kr", "\xEF\xBB\xBF" + article(meta, koreanText), koreanText},
		"UTF-16 with a mark":                   {"text/html; charset=utf-8", encoded(t, utf16le, article("", koreanText)), koreanText},
		"UTF-16 without a mark":                {"text/html; charset=utf-16", encoded(t, utf16be, article("", koreanText)), koreanText},
		"UTF-8 with one broken byte":           {"text/html; charset=utf-8", article("", koreanText+strings.Repeat(" "+koreanText, 3)+"\xFF"), koreanText},
		"UTF-8 that was cut":                   {"text/html", article("", koreanText) + "한"[:2], koreanText},
		"XML declaration":                      {"text/xml", encoded(t, kr, `<?xml version="1.0" encoding="EUC-KR"?><a><b>`+koreanText+`</b></a>`), koreanText},
		"text in EUC-KR":                       {"text/plain; charset=euc-kr", encoded(t, kr, koreanText), koreanText},
		"few letters that are UTF-8 by chance": {"text/plain; charset=euc-kr", "\xC2\xA1\xC3\xA4", encodedKR("\xC2\xA1\xC3\xA4")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := Extract([]byte(tt.body), tt.header, "https://example.com/")
			require.NoError(t, err)
			require.Contains(t, doc.Text, tt.want)
			if name != "UTF-8 with one broken byte" {
				require.NotContains(t, doc.Text, "\uFFFD")
			}
		})
	}
}

// bytes that are in no charset are no text, and so are pictures and the like.
func TestNoText(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ header, body string }{
		"empty":              {"text/html", ""},
		"spaces":             {"text/html", " \n "},
		"an empty page":      {"text/html", "<html><head></head><body></body></html>"},
		"only a script":      {"text/html", "<html><body><div id=app></div><script>render('text')</script></body></html>"},
		"a picture":          {"image/png", "text that is long enough to be an article"},
		"bytes":              {"", "\x00\x01\x02\x03\x04\x80\x90\xFF\xFE\x00\x01"},
		"bytes as a page":    {"text/html", "<p>\xFF\x80\xFD\x81\xFE\x82\xFF\x83\xFF\xF8\xFF\x81"},
		"an archive":         {"application/octet-stream", "PK\x03\x04\x14\x00\x00\x00\x08\x00\x01\x02\x03"},
		"no document at all": {"application/pdf", "%PDF-1.4 \xFF\xFEbinary-pdf-text"},
		"a page as a PDF":    {"application/pdf", "<html><body>hello there"},
		"marks alone":        {"text/plain", "... --- !!!"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := Extract([]byte(tt.body), tt.header, "https://example.com/")
			require.ErrorIs(t, err, ErrNoText)
			require.True(t, doc.Empty())
		})
	}
}

// what is no page stays readable.
func TestKinds(t *testing.T) {
	t.Parallel()
	const rss = `<?xml version="1.0"?><rss><channel><title>Feed</title><item><title>First &amp; best</title><link>/a</link>` +
		`<pubDate>Tue, 05 Mar 2024 10:00:00 GMT</pubDate><description>&lt;p&gt;Body of &lt;b&gt;one&lt;/b&gt;&lt;/p&gt;</description></item></channel></rss>`
	const atom = `<feed xmlns="http://www.w3.org/2005/Atom"><title>Log</title><entry><title>Release</title><link rel="alternate" href="https://e.com/r"/>` +
		`<updated>2024-03-05T00:00:00Z</updated><content type="html"><![CDATA[<ul><li>fixed</li></ul>]]></content></entry></feed>`
	const pdf = "%PDF-1.4\n1 0 obj<</Type/Page/Contents 2 0 R/Resources<</Font<</F 3 0 R>>>>>>endobj 2 0 obj<</Length 39>>stream\n" +
		"BT /F 9 Tf 9 9 Td (Words of a file.) Tj ET\nendstream endobj 3 0 obj<</Subtype/Type1>>endobj " +
		"4 0 obj<</Producer(p)/Title(A file)/CreationDate(D:20240305)>>endobj\n%%EOF"
	tests := map[string]struct {
		header, body, title, published string
		want                           []string
		not                            []string
	}{
		"text":               {"text/plain", "one\r\ntwo\r\n\r\n\r\nthree", "a.txt", "", []string{"one\ntwo\n\nthree"}, nil},
		"Markdown":           {"text/markdown", "# Heading\n\n- a\n- b\n", "Heading", "", []string{"- a\n- b"}, nil},
		"JSON":               {"application/json", `{"title":"Doc","datePublished":"2024-03-05","a":{"b":[1,"<x>"]}}`, "Doc", "2024-03-05", []string{`"b": [`, `"<x>"`}, nil},
		"JSON of a kind":     {"application/ld+json; charset=utf-8", "[1,\n2\n,\n3]", "", "", []string{"[1,\n2\n,\n3]"}, nil},
		"RSS":                {"application/rss+xml", rss, "Feed", "2024-03-05", []string{"## [First & best](https://example.com/a)", "2024-03-05", "Body of **one**"}, []string{"&lt;", "<p>"}},
		"RSS as HTML":        {"text/html", rss, "Feed", "2024-03-05", []string{"First & best"}, nil},
		"Atom":               {"application/atom+xml", atom, "Log", "2024-03-05", []string{"## [Release](https://e.com/r)", "- fixed"}, nil},
		"some XML":           {"text/xml", "<a><b>one</b><c x='1'>two</c></a>", "", "", []string{"one\ntwo"}, []string{"<"}},
		"PDF":                {"application/pdf", pdf, "A file", "2024-03-05", []string{"Words of a file."}, nil},
		"PDF by its bytes":   {"text/html", pdf, "A file", "2024-03-05", []string{"Words of a file."}, nil},
		"a page as text":     {"text/plain", "<!DOCTYPE html><html><body><p>Some words of a page.</p></body></html>", "", "", []string{"Some words"}, []string{"<p>"}},
		"a page as a file":   {"application/octet-stream", "<!-- x --><html><body><p>Some words of a page.</p></body></html>", "", "", []string{"Some words"}, []string{"<p>"}},
		"XHTML":              {"application/xhtml+xml", `<?xml version="1.0"?><!DOCTYPE html><html><head><title>X</title></head><body><p>Some words.</p></body></html>`, "X", "", []string{"Some words."}, []string{"<"}},
		"no type":            {"", "<p>Some words</p>", "", "", []string{"Some words"}, []string{"<"}},
		"no type, JSON":      {"", `{"a":1}`, "", "", []string{`"a": 1`}, nil},
		"source code":        {"text/x-go", "package a\n\nfunc f() {}\n", "a.txt", "", []string{"package a\n\nfunc f() {}"}, nil},
		"a type that is off": {"nonsense;;=", "<html><body>Some words", "", "", []string{"Some words"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := "https://example.com/"
			if tt.title == "a.txt" {
				address += "a.txt"
			}
			doc, err := Extract([]byte(tt.body), tt.header, address)
			require.NoError(t, err)
			require.Equal(t, tt.title, doc.Title)
			require.Equal(t, address, doc.URL)
			if tt.published != "" {
				require.Equal(t, tt.published, doc.Published.Format(time.DateOnly))
			}
			for _, want := range tt.want {
				require.Contains(t, doc.Text, want)
			}
			for _, not := range tt.not {
				require.NotContains(t, doc.Text, not)
			}
		})
	}
}

// whatever a page is made of, the work on it is bounded. That these end at all within the time of a test is what is tested.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	const end = "<p>These are the words at the end of it, and they make a sentence.</p>"
	tests := map[string]string{
		"100,000 deep":               many("<div>", 100_000) + end,
		"deep and closed":            many("<div>", 100_000) + end + many("</div>", 100_000),
		"deep with text":             many("<div>some words ", 100_000) + end,
		"deep lists":                 many("<ul><li>", 50_000) + end,
		"deep tables":                many("<table><tr><td>", 30_000) + end,
		"deep inline":                many("<sub>", 100_000) + end,
		"deep headings and labels":   many("<label><h1>", 50_000) + end,
		"deep links":                 many("<a href=/x>", 100_000) + end,
		"formats that never end":     many("<b class=1><i><code><em><strong><font color=red><nobr><s><u><tt><big><small>", 8_000) + many("<p>x", 100_000),
		"formats of many kinds":      many("<b x=1><b x=2><i y=3>", 30_000) + many("</p><p>x", 100_000),
		"a million attributes":       "<div " + many("a ", 1_000_000) + ">" + end,
		"attributes of many bodies":  "<body " + many("abc ", 300_000) + ">" + many("<body x=1>", 200_000) + end,
		"attributes of many htmls":   many("<html abc=1 d=2>", 200_000) + end,
		"5 MiB of one tag":           "<div class='" + many("x", 5*mib) + "'>" + end,
		"a tag without an end":       "<p>Some words.</p><div " + many("x", 5*mib),
		"5 MiB of a comment":         "<!--" + many("-", 5*mib) + "-->" + end,
		"a comment without an end":   "<p>Some words before.</p><!--" + many("x", 5*mib),
		"5 MiB of one word":          "<p>" + many("x", 5*mib),
		"5 MiB of one line":          "<p>" + many("word ", mib),
		"a table of a million cells": "<table>" + many("<tr>"+many("<td>1", 1000), 1000) + "</table>",
		"spans without end":          "<table>" + many("<tr><td colspan=1000000000 rowspan=1000000000>a<td>b", 1000) + "</table>" + end,
		"one wide row and many":      "<table><tr>" + many("<td colspan=20>1", 900) + many("<tr><td>1", 15_000) + "</table>",
		"nested tables":              many("<table><tr><td>a<td>", 90) + end + many("</table>", 90),
		"foster parents":             "<table>" + many("<table>x<b>", 5_000) + end,
		"a million line breaks":      "<p>a" + many("<br>", 1_000_000) + end,
		"a million paragraphs":       many("<p>", 1_000_000) + end,
		"short paragraphs":           many("<p>some words here", 300_000),
		"links only":                 many("<a href='https://example.com/x'>some words</a> ", 100_000),
		"entities":                   "<p>" + many("&amp;&lt;&bogus;&#x41;", 250_000),
		"styles":                     "<style>" + many(".a{", 1_000_000) + "</style>" + end,
		"selectors":                  "<style>" + many(".a,", 200_000) + "{display:none}</style>" + end,
		"style attributes":           many("<p style='"+many("a:b;", 400)+"'>word", 10_000),
		"JSON-LD that is deep":       `<script type="application/ld+json">` + many("[", 200_000) + "</script>" + end,
		"titles":                     many("<title>a</title>", 200_000) + end,
		"metas":                      many("<meta name=a content=b>", 200_000) + end,
		"bases":                      many("<base href=a/>", 100_000) + end,
		"digits":                     "<p>" + many("2024-", 500_000) + end,
		"quotes in quotes":           many("<blockquote>", 95) + many("line<br>", 15_000),
		"lists in lists":             many("<ul><li>", 95) + many("line<br>", 15_000),
		"pre in pre":                 many("<pre>", 50_000) + end,
		"svg":                        "<svg>" + many("<g><path d='M0'/>", 200_000) + end,
		"svg in svg":                 many("<svg><foreignObject>", 100_000) + end,
		"math":                       many("<math><mi>", 100_000) + end,
		"templates":                  many("<template>", 100_000) + end,
		"selects":                    many("<select><option>", 100_000) + end,
		"plaintext":                  "<plaintext>" + many("<p>", 500_000),
		"textarea without an end":    "<textarea>" + many("<p>x", 500_000),
		"zeros":                      "<p>" + many("a\x00", mib),
		"accents":                    "<p>a" + many("\u0301", mib),
		"joiners":                    "<p>" + many("👩\u200D", 200_000),
		"closing tags":               many("</p></div></br></table>", 200_000) + end,
		"buttons and forms":          many("<form><button><a>", 60_000) + end,
		"dd and dt":                  many("<dl><dt><dd>", 60_000) + end,
		"doctypes":                   many("<!doctype html>", 200_000) + end,
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := Extract([]byte("<html><head></head><body>"+body), "text/html", "https://example.com/")
			if err != nil {
				require.ErrorIs(t, err, ErrNoText)
			}
			requireSound(t, doc)
		})
	}
}

// requireSound checks what holds for every document.
func requireSound(tb testing.TB, doc page.Document) {
	tb.Helper()
	require.True(tb, utf8.ValidString(doc.Text), "valid UTF-8")
	require.True(tb, utf8.ValidString(doc.Title), "valid UTF-8")
	require.LessOrEqual(tb, utf8.RuneCountInString(doc.Text), page.MaxRunes)
	require.LessOrEqual(tb, utf8.RuneCountInString(doc.Title), maxTitle)
	require.NotContains(tb, doc.Text, "\x00")
}

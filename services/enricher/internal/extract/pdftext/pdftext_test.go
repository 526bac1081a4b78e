package pdftext

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/korean"
)

// build makes a file of objects, numbered from 1; its cross-reference table is left out, because it is not read.
func build(objects ...string) []byte {
	var b strings.Builder
	b.WriteString("%PDF-1.7\n")
	for i, o := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	b.WriteString("trailer<</Root 1 0 R>>\nstartxref\n0\n%%EOF")
	return []byte(b.String())
}

func stream(head, data string) string {
	return fmt.Sprintf("<<%s/Length %d>>stream\n%s\nendstream", head, len(data), data)
}

func deflate(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func a85(s string) string {
	out := make([]byte, ascii85.MaxEncodedLen(len(s)))
	return string(out[:ascii85.Encode(out, []byte(s))]) + "~>"
}

const (
	catalog = "<</Type/Catalog/Pages 2 0 R>>"
	pages   = "<</Type/Pages/Kids[3 0 R]/Count 1/Resources<</Font<</F1 5 0 R>>>>>>"
	onePage = "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>"
	latin   = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
	lines   = "BT /F1 12 Tf 72 700 Td (First line of it,) Tj 0 -14 Td (and the second.) Tj 0 -40 Td [(A new par) -20 (agraph) -300 (caf\\351)] TJ ET"
	read    = "First line of it,\nand the second.\n\nA new paragraph café"
)

// koreanFont has glyph numbers as codes and a map to characters, as programs write it.
func koreanFont(text string) (font, toUnicode, shown string) {
	var m, codes strings.Builder
	n := 0
	for i, r := range []rune(text) {
		fmt.Fprintf(&codes, "%04X", i+1)
		units := utf16.Encode([]rune{r})
		fmt.Fprintf(&m, "<%04X> <", i+1)
		for _, u := range units {
			fmt.Fprintf(&m, "%04X", u)
		}
		m.WriteString(">\n")
		n++
	}
	cmap := fmt.Sprintf("/CIDInit /ProcSet findresource begin\nbegincmap\n1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n%d beginbfchar\n%sendbfchar\nendcmap", n, m.String())
	return "<</Type/Font/Subtype/Type0/Encoding/Identity-H/ToUnicode 6 0 R>>", stream("/Filter/FlateDecode", deflate(cmap)), "BT /F1 10 Tf 50 700 Td <" + codes.String() + "> Tj ET"
}

// packed makes an object stream of objects, numbered from 11.
func packed(objects ...string) string {
	var index, body strings.Builder
	for i, o := range objects {
		fmt.Fprintf(&index, "%d %d ", 11+i, body.Len())
		body.WriteString(o + " ")
	}
	return stream(fmt.Sprintf("/Type/ObjStm/N %d/First %d/Filter/FlateDecode", len(objects), index.Len()), deflate(index.String()+body.String()))
}

// the text of a PDF is read whatever its fonts and filters are.
func TestRead(t *testing.T) {
	t.Parallel()
	const korea = "해상풍력 단지는 2027년에 착공한다. 🌊"
	font, toUnicode, shown := koreanFont(korea)
	euc, err := korean.EUCKR.NewEncoder().String("한글 문서")
	require.NoError(t, err)
	ranges := stream("", "1 begincodespacerange <00> <FF> endcodespacerange 2 beginbfrange <41> <5A> <AC00> <61> <62> [<0031> <00320033>] endbfrange")
	tests := map[string]struct {
		file []byte
		want string
	}{
		"plain":             {build(catalog, pages, onePage, stream("", lines), latin), read},
		"Flate":             {build(catalog, pages, onePage, stream("/Filter/FlateDecode", deflate(lines)), latin), read},
		"two filters":       {build(catalog, pages, onePage, stream("/Filter[/ASCII85Decode/FlateDecode]", a85(deflate(lines))), latin), read},
		"hexadecimal":       {build(catalog, pages, onePage, stream("/Filter/ASCIIHexDecode", hex.EncodeToString([]byte(lines))+">"), latin), read},
		"a name in escapes": {build(catalog, pages, onePage, stream("/Filter/Fl#61teDecode", deflate(lines)), latin), read},
		"a wrong length":    {build(catalog, pages, onePage, strings.Replace(stream("", lines), "/Length 1", "/Length 9", 1), latin), read},
		"length elsewhere":  {build(catalog, pages, onePage, fmt.Sprintf("<</Length 6 0 R>>stream\r\n%s\nendstream", lines), latin, strconv.Itoa(len(lines))), read},
		"content in parts":  {build(catalog, pages, strings.Replace(onePage, "4 0 R", "[4 0 R 6 0 R]", 1), stream("", lines[:strings.Index(lines, "0 -14")]), latin, stream("", lines[strings.Index(lines, "0 -14"):])), read},
		"a form":            {build(catalog, "<</Type/Pages/Kids[3 0 R]/Resources<</XObject<</X 6 0 R>>>>>>", onePage, stream("", "q /X Do Q"), latin, stream("/Subtype/Form/Resources<</Font<</F1 5 0 R>>>>", lines)), read},
		"Korean":            {build(catalog, pages, onePage, stream("", shown), font, toUnicode), korea},
		"ranges":            {build(catalog, pages, onePage, stream("", "BT /F1 9 Tf (ACab) Tj ET"), "<</Subtype/TrueType/ToUnicode 6 0 R>>", ranges), "가갂123"},
		"KSC-EUC-H":         {build(catalog, pages, onePage, stream("", "BT /F1 9 Tf ("+euc+") Tj ET"), "<</Subtype/Type0/Encoding/KSCms-UHC-H>>"), "한글 문서"},
		"UniKS-UCS2-H":      {build(catalog, pages, onePage, stream("", "BT /F1 9 Tf <D55CAE00> Tj ET"), "<</Subtype/Type0/Encoding/UniKS-UCS2-H>>"), "한글"},
		"words by place":    {build(catalog, pages, onePage, stream("", "BT /F1 10 Tf 1 0 0 1 50 700 Tm (one) Tj 1 0 0 1 80 700 Tm (two) Tj ET"), latin), "one two"},
		"letters by place":  {build(catalog, pages, onePage, stream("", "BT /F1 10 Tf 1 0 0 1 50 700 Tm (o) Tj 1 0 0 1 55.5 700 Tm (n) Tj 1 0 0 1 61 700 Tm (e) Tj ET"), latin), "one"},
		"escapes": {build(catalog, pages, onePage, stream("", `BT /F1 9 Tf (a\(b\)\\ (c) \101\
d) Tj ET`), latin), `a(b)\ (c) Ad`},
		"objects in streams": {build(packed("<</Type/Catalog/Pages 12 0 R>>", "<</Type/Pages/Kids[13 0 R]/Resources<</Font<</F1 3 0 R>>>>>>", "<</Type/Page/Contents 2 0 R>>"), stream("", lines), latin), read},
		"no tree":            {build("<<>>", "<<>>", "<</Type/Page/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>", stream("", lines), latin), read},
		"a newer object":     {append(build(catalog, pages, onePage, stream("", lines), latin), []byte("\n4 0 obj\n"+stream("", "BT /F1 9 Tf (newer) Tj ET")+"\nendobj")...), "newer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := Read(tt.file)
			require.NoError(t, err)
			require.Equal(t, tt.want, doc.Text)
		})
	}
}

func TestProperties(t *testing.T) {
	t.Parallel()
	doc, err := Read(build(catalog, pages, onePage, stream("", lines), latin, "<</Producer(x)/Title<FEFFD55CAE00>/CreationDate(D:20240305101112+09'00')>>"))
	require.NoError(t, err)
	require.Equal(t, "한글", doc.Title)
	require.Equal(t, "D:20240305101112+09'00'", doc.Created)
}

// no file takes long or much, whatever it says.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	many := strings.Repeat
	bomb := deflate(deflate(many("\x00", 40<<20)))
	tests := map[string][]byte{
		"no PDF":                 []byte("hello"),
		"only a header":          []byte("%PDF-1.4 \xFF\xFEbinary-pdf-text"),
		"encrypted":              append(build(catalog, pages, onePage, stream("", lines), latin), []byte("trailer<</Encrypt 9 0 R>>")...),
		"pages in a circle":      build(catalog, "<</Kids[2 0 R 3 0 R]>>", "<</Kids[2 0 R]>>"),
		"references in a circle": build("2 0 R", "1 0 R", "<</Type/Page/Contents 1 0 R>>"),
		"forms in a circle":      build(catalog, pages, onePage, stream("", "/X Do"), stream("/Subtype/Form/Resources<</XObject<</X 5 0 R>>>>", "/X Do /X Do /X Do")),
		"deep arrays":            build(catalog, pages, onePage, many("[", 1<<19)),
		"deep dictionaries":      build(catalog, pages, onePage, many("<</A", 1<<18)),
		"deep strings":           build(catalog, pages, onePage, many("(", 1<<19)),
		"deep content":           build(catalog, pages, onePage, stream("", "BT /F1 1 Tf "+many("[", 1<<18)), latin),
		"a bomb":                 build(catalog, pages, onePage, stream("/Filter[/FlateDecode/FlateDecode]", bomb), latin),
		"many objects":           []byte("%PDF-1.4\n" + many("1 0 obj (", 50_000)),
		"overlapping objects": []byte("%PDF-1.4\n" + func() string {
			var b strings.Builder
			for i := range 30_000 {
				fmt.Fprintf(&b, "%d 0 obj [", i)
			}
			return b.String()
		}()),
		"a giant map":   build(catalog, pages, onePage, stream("", "BT /F1 9 Tf (A) Tj ET"), "<</ToUnicode 6 0 R>>", stream("", many("1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange ", 1000))),
		"pictures":      build(catalog, pages, onePage, stream("", many("BI ID EI ", 50_000)), latin),
		"huge numbers":  build(catalog, pages, onePage, stream("", "BT /F1 1e308 Tf 1e308 1e308 Td (a) Tj 1e308 1e308 Td (b) Tj 1 0 0 1e999 NaN 3 Tm (c) Tj ET"), latin),
		"huge object":   []byte("%PDF-1.4\n999999999 0 obj<</Type/ObjStm/N 999999999/First 99999999>>stream\nendstream"),
		"same contents": build(catalog, "<</Kids["+many("3 0 R ", 1000)+"]>>", onePage, stream("", many("(a) Tj ", 100_000)), latin),
	}
	for name, file := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := Read(file)
			if err != nil {
				require.ErrorIs(t, err, ErrUnreadable)
			}
			require.LessOrEqual(t, len(doc.Text), 2*maxText+maxObject)
		})
	}
}

func FuzzRead(f *testing.F) {
	font, toUnicode, shown := koreanFont("한글")
	f.Add(build(catalog, pages, onePage, stream("", lines), latin))
	f.Add(build(catalog, pages, onePage, stream("/Filter/FlateDecode", deflate(shown)), font, toUnicode))
	f.Fuzz(func(t *testing.T, file []byte) {
		doc, err := Read(file)
		if err != nil {
			require.ErrorIs(t, err, ErrUnreadable)
		}
		require.True(t, utf8.ValidString(doc.Text))
	})
}

package extract

import (
	"bytes"
	"mime"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	enc "golang.org/x/text/encoding/unicode"
)

const (
	// metaWindow is how much of a page is searched for marks of its charset. Browsers look at 1 KiB; pages with a late mark are read as well.
	metaWindow = 64 << 10
	// guessWindow is how much text is enough to guess a charset from.
	guessWindow = 8 << 10
	// maxBroken is the share of characters that may be unreadable in a text that counts as read.
	maxBroken = 0.05
)

// aliases are labels that pages use and the encoding standard of the web does not know.
var aliases = map[string]string{
	"cp949": "euc-kr", "ms949": "euc-kr", "uhc": "euc-kr", "x-windows-949": "euc-kr", "euckr": "euc-kr", "euc_kr": "euc-kr",
	"ksc5601": "euc-kr", "ks_c_5601": "euc-kr", "ks-c-5601-1987": "euc-kr", "korean": "euc-kr", "johab": "",
	"utf8mb4": "utf-8", "utf_8": "utf-8", "utf-8-sig": "utf-8", "unicode": "utf-8",
	"cp932": "shift_jis", "ms932": "shift_jis", "eucjp": "euc-jp", "cp936": "gbk", "ms936": "gbk", "cp950": "big5", "latin-1": "windows-1252",
}

var metaCharset = regexp.MustCompile(`(?i)<meta[^>]{1,500}?charset\s*=\s*["']?\s*([a-z0-9_:.\-]+)|<\?xml[^>]{1,200}?encoding\s*=\s*["']([a-z0-9_:.\-]+)`)

// decode gives body as UTF-8. A byte order mark wins; then valid UTF-8 is what it is, whatever the labels say; then the label of the header,
// then those in the page, each only if the bytes fit it; then what the bytes look like.
func decode(body []byte, contentType string) string {
	if text, ok := marked(body); ok {
		return text
	}
	if e := wide(body); e != nil {
		return decodeAs(e, body)
	}
	labels := labelled(body, contentType)
	if utf8.Valid(trimPartial(body)) && !onlyByChance(body, labels) {
		return string(trimPartial(body))
	}
	western := false
	for _, label := range labels {
		if label.name == "windows-1252" {
			western = true // fits any bytes, so that it proves nothing: servers say it by default
			continue
		}
		if broken(decodeAs(label.Encoding, sample(body))) <= maxBroken {
			return decodeAs(label.Encoding, body)
		}
	}
	if guess := guessed(body); guess != nil {
		return decodeAs(guess, body)
	}
	if !western && broken(string(sample(body))) <= maxBroken {
		return strings.ToValidUTF8(string(body), "\uFFFD")
	}
	return decodeAs(charmap.Windows1252, body)
}

// marked reads a text that begins with a byte order mark.
func marked(body []byte) (string, bool) {
	switch {
	case bytes.HasPrefix(body, []byte("\xEF\xBB\xBF")):
		return strings.ToValidUTF8(string(body[3:]), "\uFFFD"), true
	case bytes.HasPrefix(body, []byte("\xFF\xFE")):
		return decodeAs(enc.UTF16(enc.LittleEndian, enc.IgnoreBOM), body[2:]), true
	case bytes.HasPrefix(body, []byte("\xFE\xFF")):
		return decodeAs(enc.UTF16(enc.BigEndian, enc.IgnoreBOM), body[2:]), true
	}
	return "", false
}

// wide recognises UTF-16 without a mark by the zeros of its markup, nil = it is not.
func wide(body []byte) encoding.Encoding {
	head := body[:min(len(body), 1024)]
	var zeros [2]int
	for i, c := range head {
		if c == 0 {
			zeros[i%2]++
		}
	}
	switch {
	case zeros[1] > len(head)/8 && zeros[0] < zeros[1]/8:
		return enc.UTF16(enc.LittleEndian, enc.IgnoreBOM)
	case zeros[0] > len(head)/8 && zeros[1] < zeros[0]/8:
		return enc.UTF16(enc.BigEndian, enc.IgnoreBOM)
	}
	return nil
}

// label is an encoding by the name that the standard gives it.
type label struct {
	encoding.Encoding
	name string
}

// labelled gives the encodings that the header and the page name, in the order of their weight. Unknown names are left out, and so is UTF-8, which the
// bytes tell by themselves.
func labelled(body []byte, contentType string) []label {
	var found []label
	add := func(text string) {
		text = strings.ToLower(strings.Trim(text, " \t\"';"))
		if to, ok := aliases[text]; ok {
			text = to
		}
		// Of UTF-16 a page that can be read up to its label is none, and "replacement" is a refusal.
		if e, name := charset.Lookup(text); e != nil && name != "replacement" && !strings.HasPrefix(name, "utf-") {
			found = append(found, label{e, name})
		}
	}
	if _, params, err := mime.ParseMediaType(contentType); err == nil || params != nil {
		add(params["charset"])
	} else if _, text, ok := strings.Cut(strings.ToLower(contentType), "charset="); ok {
		add(text)
	}
	for _, m := range metaCharset.FindAllSubmatch(body[:min(len(body), metaWindow)], 8) {
		add(string(m[1]) + string(m[2]))
	}
	return found
}

// onlyByChance says whether bytes are valid UTF-8 without being meant so: a short Korean text in EUC-KR may consist of nothing but pairs that are Latin
// letters with accents in UTF-8, and ISO-2022-JP is ASCII with escapes. It takes a label and a reading without fault to say so, and words of several such
// letters: a page in UTF-8 with a wrong label may have one sign here and there.
func onlyByChance(body []byte, labels []label) bool {
	for _, label := range labels {
		if label.name == "iso-2022-jp" && bytes.Contains(body, []byte("\x1b$")) {
			return true
		}
	}
	run, longest := 0, 0
	for _, r := range string(sample(body)) {
		if r >= 0x800 {
			return false
		}
		if run++; r < utf8.RuneSelf {
			run = 0
		}
		longest = max(longest, run)
	}
	for _, label := range labels {
		if asian, other := scripts(decodeAs(label.Encoding, sample(body))); longest > 1 && asian > 0 && other == 0 {
			return true
		}
	}
	return false
}

// scripts counts the characters of East Asian scripts and all other ones beyond ASCII.
func scripts(text string) (asian, other int) {
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
		case unicode.In(r, unicode.Hangul, unicode.Han, unicode.Hiragana, unicode.Katakana):
			asian++
		default:
			other++
		}
	}
	return asian, other
}

// guessed finds the legacy encoding of an East Asian page by what is common in it, nil = none fits. A pair of bytes fits several of them; the right one
// is where the characters are ordinary ones.
func guessed(body []byte) encoding.Encoding {
	part := sample(body)
	if !pairs(part) {
		return nil
	}
	var best encoding.Encoding
	var most float64
	for _, e := range []encoding.Encoding{
		korean.EUCKR, japanese.ShiftJIS, japanese.EUCJP, simplifiedchinese.GB18030, traditionalchinese.Big5,
	} {
		text := decodeAs(e, part)
		if broken(text) > maxBroken {
			continue
		}
		if score := ordinary(text); score > most {
			best, most = e, score
		}
	}
	if most < 0.6 {
		return nil
	}
	return best
}

// pairs says whether the bytes beyond ASCII mostly stand together, as those of a multi-byte encoding do; accents of Western texts stand alone.
func pairs(part []byte) bool {
	var together, alone int
	for i := 0; i < len(part); i++ {
		if part[i] < utf8.RuneSelf {
			continue
		}
		start := i
		for i < len(part) && part[i] >= utf8.RuneSelf {
			i++
		}
		if i-start == 1 {
			alone++
		} else {
			together += i - start
		}
	}
	return together > alone
}

// ordinary is the share of a text's characters beyond ASCII that everyday texts of some language are written with.
func ordinary(text string) float64 {
	var marks, hangul, kana, all float64
	var han []rune
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf || r == utf8.RuneError:
			continue
		case r >= 0xAC00 && r <= 0xD7A3:
			if level(korean.EUCKR, r, 0xB0, 0xC8) {
				hangul++ // one of the 2350 syllables that nearly all texts are written with
			}
		case r >= 0x3041 && r <= 0x30FF:
			kana++
		case r >= 0x4E00 && r <= 0x9FFF:
			han = append(han, r)
		case r >= 0x3000 && r <= 0x303F, r >= 0xFF00 && r <= 0xFF60, r >= 0x2010 && r <= 0x2026:
			marks++
		}
		all++
	}
	if all == 0 {
		return 0
	}
	good := marks
	// A Korean text is mostly Hangul, a Japanese one has kana between its characters; by chance neither happens.
	spoken := hangul > all/2 || kana > all/5
	if spoken {
		good += hangul + kana + all/10
	}
	for _, r := range han {
		// The first levels of these sets hold the few thousand characters that texts are written with.
		switch {
		case spoken:
			if level(japanese.EUCJP, r, 0xB0, 0xCF) {
				good++
			}
		case level(simplifiedchinese.GBK, r, 0xB0, 0xD7):
			good += 0.9
		case level(traditionalchinese.Big5, r, 0xA4, 0xC6):
			good += 0.85
		default:
			good += 0.3
		}
	}
	return good / all
}

// level says whether a set of two bytes has a character in the rows from low to high.
func level(e encoding.Encoding, r rune, low, high byte) bool {
	b, err := e.NewEncoder().String(string(r))
	return err == nil && len(b) == 2 && b[0] >= low && b[0] <= high && (b[1] >= 0xA1 || e == traditionalchinese.Big5)
}

func decodeAs(e encoding.Encoding, body []byte) string {
	text, err := e.NewDecoder().Bytes(body)
	if err != nil {
		return strings.ToValidUTF8(string(body), "\uFFFD")
	}
	return string(text)
}

// broken is the share of the characters beyond ASCII that could not be read.
func broken(text string) float64 {
	var bad, all float64
	for _, r := range text {
		if r < utf8.RuneSelf {
			continue
		}
		all++
		if r == utf8.RuneError || r >= 0x80 && r < 0xA0 || unicode.Is(unicode.Co, r) {
			bad++
		}
	}
	if all == 0 {
		return 0
	}
	return bad / all
}

// sample is the part of a text that is enough to judge it by: the markup before the first byte beyond ASCII tells nothing.
func sample(body []byte) []byte {
	start := bytes.IndexFunc(body, func(r rune) bool { return r >= utf8.RuneSelf })
	if start < 0 {
		return nil
	}
	return body[start:min(len(body), start+guessWindow)]
}

// trimPartial takes off the beginning of a character at the end of a body that was cut.
func trimPartial(body []byte) []byte {
	for n := 1; n <= 3 && n <= len(body); n++ {
		if c := body[len(body)-n]; utf8.RuneStart(c) {
			if c >= 0xC0 && !utf8.FullRune(body[len(body)-n:]) {
				return body[:len(body)-n]
			}
			break
		}
	}
	return body
}

package pdftext

import (
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/unicode"
)

// maxMappings is how many characters the fonts of a file may map together.
const maxMappings = 100_000

// font turns the codes of a text into characters.
type font struct {
	codes  map[string]string // by code, as ToUnicode says
	width  int               // bytes of a code there
	limit  int               // of codes
	legacy encoding.Encoding // otherwise
}

func (f *file) font(v any) *font {
	d := f.dict(v)
	if _, data := f.stream(d["ToUnicode"]); len(data) > 0 {
		m := mappings(data, maxMappings-f.mapped)
		if f.mapped += len(m.codes); len(m.codes) > 0 {
			return m
		}
	}
	enc, _ := f.get(d["Encoding"]).(name)
	switch s := string(enc); {
	case strings.HasPrefix(s, "UniKS"), strings.HasPrefix(s, "UniJIS"), strings.HasPrefix(s, "UniGB"), strings.HasPrefix(s, "UniCNS"):
		return &font{legacy: unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)}
	case strings.HasPrefix(s, "KSC"):
		return &font{legacy: korean.EUCKR}
	case s == "MacRomanEncoding":
		return &font{legacy: charmap.Macintosh}
	case d["Subtype"] == name("Type0"):
		return &font{} // glyph numbers that nothing explains
	}
	return &font{legacy: charmap.Windows1252}
}

// mappings reads a ToUnicode map.
func mappings(data []byte, limit int) *font {
	m := &font{codes: map[string]string{}, limit: limit}
	l := lexer{b: data}
	var args []any
	for len(m.codes) < limit {
		v, ok := l.next()
		if !ok {
			break
		}
		op, isOp := v.(keyword)
		if !isOp {
			if len(args) < 1000 {
				args = append(args, v)
			}
			continue
		}
		switch op {
		case "endbfchar":
			for i := 0; i+1 < len(args); i += 2 {
				from, ok1 := args[i].(string)
				to, ok2 := args[i+1].(string)
				if ok1 && ok2 {
					m.put(from, utf16Text(to))
				}
			}
		case "endbfrange":
			for i := 0; i+2 < len(args); i += 3 {
				low, ok1 := args[i].(string)
				high, ok2 := args[i+1].(string)
				if ok1 && ok2 {
					m.span(low, high, args[i+2])
				}
			}
		}
		args = args[:0]
	}
	return m
}

func (m *font) put(code, text string) {
	m.codes[code] = text
	m.width = max(m.width, min(len(code), 4))
}

// span maps consecutive codes to consecutive characters, or to those of a list.
func (m *font) span(low, high string, to any) {
	from, last := number(low), number(high)
	for i := 0; from+i <= last && len(m.codes) < m.limit; i++ {
		code := make([]byte, len(low))
		for n, k := from+i, len(low)-1; k >= 0; n, k = n>>8, k-1 {
			code[k] = byte(n)
		}
		switch to := to.(type) {
		case string:
			units := []rune(utf16Text(to))
			if len(units) == 0 {
				return
			}
			units[len(units)-1] += rune(i)
			m.put(string(code), string(units))
		case []any:
			if i >= len(to) {
				return
			}
			s, _ := to[i].(string)
			m.put(string(code), utf16Text(s))
		default:
			return
		}
	}
}

func number(s string) (n int) {
	for i := range min(len(s), 4) {
		n = n<<8 | int(s[i])
	}
	return n
}

func utf16Text(s string) string {
	units := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return string(utf16.Decode(units))
}

// textString reads a string of the file's properties.
func textString(s string) string {
	if rest, ok := strings.CutPrefix(s, "\xFE\xFF"); ok {
		return utf16Text(rest)
	}
	if rest, ok := strings.CutPrefix(s, "\xEF\xBB\xBF"); ok {
		return rest
	}
	out, _ := charmap.Windows1252.NewDecoder().String(s)
	return out
}

// decode turns a shown string into characters.
func (m *font) decode(s string) string {
	if m == nil || m.codes == nil && m.legacy == nil {
		return ""
	}
	if m.codes == nil {
		out, _ := m.legacy.NewDecoder().String(s)
		return out
	}
	var b strings.Builder
	for s != "" {
		n := min(m.width, len(s))
		for n > 1 && m.codes[s[:n]] == "" && m.codes[s[:n-1]] != "" {
			n--
		}
		b.WriteString(m.codes[s[:n]])
		s = s[n:]
	}
	return b.String()
}

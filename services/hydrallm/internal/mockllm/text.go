package mockllm

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// formats are texts of well-known formats. The last digit is replaced where several have to differ.
var formats = map[string]string{
	"date": "2026-01-01", "date-time": "2026-01-01T12:00:01Z", "time": "12:00:01Z", "duration": "PT1S", "email": "user@example.com",
	"hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uri": "https://example.com/1", "url": "https://example.com/1",
	"uuid": "00000000-0000-4000-8000-000000000001",
}

// text is the name of the property, or what its schema leaves.
func text(s gjson.Result, p place) string {
	least, most := int(s.Get("minLength").Int()), int(s.Get("maxLength").Int())
	if !s.Get("maxLength").Exists() {
		most = longest
	}
	if format, ok := formats[s.Get("format").Str]; ok {
		if digit := strings.LastIndexAny(format, "0123456789"); digit >= 0 && p.variant > 0 {
			return format[:digit] + strconv.Itoa((p.variant+1)%10) + format[digit+1:]
		}
		return format
	}
	if pattern := s.Get("pattern").Str; pattern != "" {
		if sample, ok := matching(pattern, least, most, p.variant); ok {
			return sample
		}
	}
	value := p.name
	if p.variant > 0 {
		value += " " + strconv.Itoa(p.variant+1)
	}
	for utf8.RuneCountInString(value) < min(least, longest) {
		value += "."
	}
	if runes := []rune(value); len(runes) > most {
		value = string(runes[len(runes)-most:])
	}
	return value
}

// matching makes a text that a pattern matches, with the right length if it can. ok is false when there is none, or when the pattern is not one
// of RE2: JavaScript has more.
func matching(pattern string, least, most, variant int) (sample string, ok bool) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", false
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	parsed = parsed.Simplify()
	for repeats := range 64 {
		var b strings.Builder
		write := sampler{out: &b, repeats: repeats, variant: variant}
		write.node(parsed)
		if n := utf8.RuneCountInString(b.String()); n >= least && n <= most && re.MatchString(b.String()) {
			return b.String(), true
		}
	}
	return "", false
}

// sampler writes a text for the parts of a pattern.
type sampler struct {
	out     *strings.Builder
	repeats int // how often what may be repeated is
	variant int // which of several possibilities is taken
	steps   int // so far; nested repetitions are many
}

const mostSteps = 100_000

func (w *sampler) node(re *syntax.Regexp) {
	if w.steps++; w.steps > mostSteps {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		w.out.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		w.out.WriteRune(w.fromClass(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.out.WriteByte('x')
	case syntax.OpAlternate:
		w.node(re.Sub[w.variant%len(re.Sub)])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		n := w.repeats
		if re.Op == syntax.OpPlus {
			n = max(n, 1)
		}
		if re.Op == syntax.OpQuest {
			n = min(n, 1)
		}
		for range n {
			w.node(re.Sub[0])
		}
	default: // captures and concatenations; what matches no text has no parts
		for _, sub := range re.Sub {
			w.node(sub)
		}
	}
}

// fromClass takes a letter or a digit if the class has one, else its first character. ranges are pairs of first and last.
func (w *sampler) fromClass(ranges []rune) rune {
	for _, wanted := range []string{"abcdefghij", "ABCDEFGHIJ", "0123456789"} {
		for i := range len(wanted) {
			c := rune(wanted[(i+w.variant)%len(wanted)])
			for r := 0; r+1 < len(ranges); r += 2 {
				if ranges[r] <= c && c <= ranges[r+1] {
					return c
				}
			}
		}
	}
	if len(ranges) == 0 {
		return 'x'
	}
	return ranges[0]
}

package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"

	"hydrallm/services/enricher/internal/page"
)

// tidy makes text fit for a prompt: valid UTF-8 in normal form C, without control characters and without those that show nothing, which hide
// words from a reader; no spaces at the ends of lines, at most one empty line in a row, and at most page.MaxRunes characters.
func tidy(text string) string {
	text = visible(text[:min(len(text), 16*page.MaxRunes)])
	var b strings.Builder
	b.Grow(min(len(text), 4*page.MaxRunes))
	empty := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\n\u00A0")
		if line == "" {
			empty++
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
			if empty > 0 {
				b.WriteByte('\n')
			}
		}
		empty = 0
		b.WriteString(line)
	}
	return cut(norm.NFC.String(b.String()), page.MaxRunes)
}

// oneLine is tidy for a title.
func oneLine(text string, maxRunes int) string {
	return cut(norm.NFC.String(strings.Join(strings.Fields(visible(text)), " ")), maxRunes)
}

// visible drops what a reader of a page would not see. Joiners and variation selectors stay: emoji and some scripts are written with them.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\u200D' || r == '\u200C':
			return r
		case r == '\u2028' || r == '\u2029' || r == '\u0085' || r == '\v' || r == '\f':
			return '\n'
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Noncharacter_Code_Point), r == '\u3164', r == '\uFFA0', r >= 0xE0100 && r <= 0xE01EF:
			return -1 // unreadable ones, direction marks, tags, fillers
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// cut shortens text to at most maxRunes characters, at the end of a paragraph or sentence if one is near, else between words, and never inside of what
// is seen as one character.
func cut(text string, maxRunes int) string {
	if len(text) <= maxRunes || utf8.RuneCountInString(text) <= maxRunes {
		return text
	}
	end := 0
	for range maxRunes {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	window := text[:end]
	near := len(window) - len(window)/8
	if i := strings.LastIndex(window, "\n\n"); i >= near {
		return strings.TrimRight(window[:i], " \n")
	}
	if i := lastSentence(window); i >= near {
		return strings.TrimRight(window[:i], " \n")
	}
	if i := strings.LastIndexAny(window, " \n"); i >= near {
		return strings.TrimRight(window[:i], " \n")
	}
	return window[:graphemeStart(text, end)]
}

// lastSentence gives where the last sentence of text ends, or the last line.
func lastSentence(text string) int {
	last := strings.LastIndexByte(text, '\n')
	for _, mark := range []string{". ", "! ", "? ", ".\n", "。", "!", "?"} {
		if i := strings.LastIndex(text, mark); i >= 0 {
			last = max(last, i+len(strings.TrimRight(mark, " \n")))
		}
	}
	return last
}

// graphemeStart gives the beginning of the cluster that end cuts, or end if it cuts none. Clusters are looked for in the neighbourhood: one that is
// longer is cut.
func graphemeStart(text string, end int) int {
	from := max(0, end-256)
	for from < end && !utf8.RuneStart(text[from]) {
		from++
	}
	at, state := from, -1
	rest := text[from:min(len(text), end+256)]
	for rest != "" {
		cluster, tail, _, next := uniseg.FirstGraphemeClusterInString(rest, state)
		if at+len(cluster) > end {
			break
		}
		at, rest, state = at+len(cluster), tail, next
	}
	if at == from {
		return end
	}
	return at
}

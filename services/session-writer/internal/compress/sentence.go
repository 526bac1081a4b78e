package compress

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// sentences gives the sentences of a line in order; nothing but white space is between them. The boundaries are those of Unicode (UAX #29), less those
// behind abbreviations, within numbers, addresses and code, and with those that Korean has without a mark.
func sentences(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		begin, end, rest, state := 0, 0, line, -1
		for rest != "" {
			var part string
			part, rest, state = uniseg.FirstSentenceInString(rest, state)
			end += len(part)
			if rest != "" && continues(line[begin:end], rest) {
				continue
			}
			for _, sentence := range unmarked(line[begin:end]) {
				for _, piece := range pieces(sentence) {
					if piece = strings.TrimSpace(piece); piece != "" && !yield(piece) {
						return
					}
				}
			}
			begin = end
		}
	}
}

var (
	abbreviation = regexp.MustCompile(`(?i)(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|vs|e\.g|i\.e|cf|no|nr|fig|inc|ltd|co|jr|sr|approx|dept|est|vol|p|pp|ca)\.\s+$`)
	initial      = regexp.MustCompile(`(?:^|[\s(])\p{Lu}\.\s+$`)
	countedNext  = regexp.MustCompile(`\d\.\s*$`)
	koreanDate   = regexp.MustCompile(`\d{2,4}\. ?\d{1,2}\. ?\d{1,2}\.\s*$`)
	koreanEnd    = regexp.MustCompile(`(?:[다요까죠음함임네지라자오군]|[ㄱ-ㅣ])[.]$`)
)

// maxJoined bounds, in bytes, how far the end of a sentence is looked for.
const maxJoined = 1200

// tailLength is how much of the end of a sentence, in bytes, is compared with what is no end.
const tailLength = 24

// continues says whether a sentence goes on behind a boundary of Unicode.
func continues(before, after string) bool {
	if len(before) > maxJoined {
		return false
	}
	next, _ := utf8.DecodeRuneInString(after)
	tail := before[max(0, len(before)-tailLength):]
	switch {
	case strings.IndexFunc(before, unicode.IsLetter) < 0: // "1. " of a list, "..."
		return true
	case strings.Count(before, "`")%2 == 1 && strings.Contains(after[:min(len(after), maxJoined)], "`"):
		return true
	case abbreviation.MatchString(tail), initial.MatchString(tail):
		return true
	case unicode.IsDigit(next) && countedNext.MatchString(tail), unicode.Is(unicode.Hangul, next) && koreanDate.MatchString(tail): // 2024. 3. 15. 금요일
		return true
	}
	last, _ := utf8.DecodeLastRuneInString(before)
	if unicode.IsSpace(last) {
		return false
	}
	word := before[strings.LastIndexFunc(before, unicode.IsSpace)+1:]
	if strings.Contains(word, "://") || strings.Contains(word, "@") {
		return true
	}
	return last == '.' && !koreanEnd.MatchString(word) // without white space only where a verb ends
}

// unmarkedEnd ends Korean sentences that nobody has ended with a mark.
var unmarkedEnd = regexp.MustCompile(`(?:\p{Hangul}{1,}니다|\p{Hangul}*[어아해에예네군세데지까게거]요|\p{Hangul}+거든|\p{Hangul}*[했었았겠]음)\s+`)

// quoting follows a sentence that is only cited.
var quoting = regexp.MustCompile(`^(?:라고|하고|라는|라며|만|고|는데|라면)`)

// unmarked divides a sentence at ends of Korean ones.
func unmarked(text string) (list []string) {
	if !strings.Contains(text, "니다 ") && !strings.Contains(text, "요 ") && !strings.Contains(text, "거든 ") && !strings.Contains(text, "음 ") {
		return []string{text}
	}
	begin := 0
	for _, at := range unmarkedEnd.FindAllStringIndex(text, -1) {
		if at[1] < len(text) && !quoting.MatchString(text[at[1]:]) {
			list = append(list, text[begin:at[1]])
			begin = at[1]
		}
	}
	return append(list, text[begin:])
}

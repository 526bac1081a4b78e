package compact

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Extract is a compressor that needs no model: it keeps the sentences that say most, in their order. What counts are numbers, names, identifiers of
// code and decisions, in English and Korean, and words that are rare in the text; a sentence that says what another one says is left out.
type Extract struct{}

var _ Compressor = Extract{}

// short is how long a text is that is not worth the work.
const short = 500

// Compress keeps whole sentences.
func (Extract) Compress(_ context.Context, text string, tokens int) (string, error) {
	most := tokens * charactersPerToken
	if n := utf8.RuneCountInString(text); n < short || n <= most {
		return text, nil
	}
	all := sentences(text)
	weigh(all)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].score, all[a].score) })
	var kept []int
	said := map[string]bool{}
	for _, i := range order {
		s := &all[i]
		size := utf8.RuneCountInString(s.text) + 1
		if size > most || repeats(s, said) {
			continue
		}
		most -= size
		kept = append(kept, i)
		for _, w := range s.words {
			said[w] = true
		}
	}
	if len(kept) == 0 { // no sentence fits
		runes := []rune(text)
		return string(runes[:tokens*charactersPerToken]), nil
	}
	slices.Sort(kept)
	return write(all, kept), nil
}

// sentence is a sentence of a text.
type sentence struct {
	text  string
	who   string // who says it, with the colon; "" = as in the sentence before, or nobody
	line  int
	first bool // of its line
	words []string
	score float64
}

// write puts sentences together, each line with who said it.
func write(all []sentence, kept []int) string {
	var b strings.Builder
	line := -1
	for _, i := range kept {
		s := &all[i]
		switch {
		case s.line == line:
			b.WriteByte(' ')
		case line >= 0:
			b.WriteByte('\n')
		}
		if s.line != line {
			b.WriteString(s.who)
		}
		line = s.line
		b.WriteString(s.text)
	}
	return b.String()
}

var speakers = []string{"User: ", "Assistant: ", "Tool: "}

// sentences takes a text apart.
func sentences(text string) (all []sentence) {
	who := ""
	line := 0
	for part := range strings.Lines(text) {
		part = strings.TrimSpace(part)
		for _, speaker := range speakers {
			if rest, ok := strings.CutPrefix(part, speaker); ok {
				who, part = speaker, rest
			}
		}
		first := true
		for part != "" {
			end := sentenceEnd(part)
			if said := strings.TrimSpace(part[:end]); said != "" {
				all = append(all, sentence{text: said, who: who, line: line, first: first, words: wordsOf(said)})
				first = false
			}
			part = part[end:]
		}
		line++
	}
	return all
}

// maxSentence is where a text without an end of a sentence is cut, in bytes.
const maxSentence = 400

// sentenceEnd gives where the first sentence of a text ends: behind a mark that white space follows, but not behind the point of a number or an initial.
func sentenceEnd(text string) int {
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		switch {
		case r == utf8.RuneError:
			continue
		case r == '。' || r == '！' || r == '？':
			return next
		case r == '.' || r == '!' || r == '?':
			following, _ := utf8.DecodeRuneInString(text[next:])
			if next == len(text) || unicode.IsSpace(following) && !initial(text[:i]) {
				return next
			}
		case i >= maxSentence && unicode.IsSpace(r):
			return next
		}
	}
	return len(text)
}

// initial says whether a text ends with a single capital letter, as a name may.
func initial(text string) bool {
	last, size := utf8.DecodeLastRuneInString(text)
	before, _ := utf8.DecodeLastRuneInString(text[:len(text)-size])
	return unicode.IsUpper(last) && (len(text) == size || unicode.IsSpace(before))
}

// wordsOf gives the words of a sentence as they are compared: in lower case, Korean ones without their endings, as far as two syllables tell them.
func wordsOf(text string) (words []string) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '_' && r != '-' }) {
		if runes := []rune(word); len(runes) > 2 && unicode.Is(unicode.Hangul, runes[0]) {
			word = string(runes[:2])
		}
		words = append(words, strings.ToLower(word))
	}
	return words
}

// weigh gives each sentence its score.
func weigh(all []sentence) {
	holds := map[string]int{} // sentences that hold a word
	for i := range all {
		seen := map[string]bool{}
		for _, w := range all[i].words {
			if !seen[w] {
				seen[w] = true
				holds[w]++
			}
		}
	}
	for i := range all {
		s := &all[i]
		rare := 0.0
		for _, w := range s.words {
			rare += math.Log(float64(len(all)+1) / float64(holds[w]))
		}
		if n := len(s.words); n > 0 {
			s.score = rare / float64(n)
		}
		s.score += signs(s)
		if s.who == "" { // of an earlier summary, where it was chosen before
			s.score += 1.5
		}
	}
}

// decisions are parts of words with which people settle something, ask for it, or say what somebody or something is called.
var decisions = []string{
	"decid", "agreed", "must", "should", "never", "always", "prefer", "deadline", "will use", "let's", "remember", "important", "my name", "is called", "instead of", "because",
	"결정", "하기로", "정했", "반드시", "절대", "항상", "기억", "중요", "마감", "이름은", "대신", "때문", "합의", "선호",
}

// signs weighs what a sentence holds of what must not be lost.
func signs(s *sentence) (score float64) {
	digits, names, code := false, 0, 0
	for i, word := range strings.Fields(s.text) {
		bare := strings.Trim(word, `.,;:!?"'()[]{}`+"`")
		if bare == "" {
			continue
		}
		digits = digits || strings.ContainsFunc(bare, unicode.IsDigit)
		first, size := utf8.DecodeRuneInString(bare)
		switch inner := bare[size:]; {
		case strings.ContainsAny(bare, "_/@#=<>\\") || strings.ContainsFunc(inner, unicode.IsUpper) || strings.ContainsRune(word, '`') || strings.Contains(inner, "("):
			code++
		case unicode.IsUpper(first) && i > 0:
			names++
		}
	}
	if digits {
		score += 2
	}
	score += 0.8*math.Min(float64(names), 3) + math.Min(float64(code), 3)
	lower := strings.ToLower(s.text)
	for _, sign := range decisions {
		if strings.Contains(lower, sign) {
			score += 1.5
			break
		}
	}
	switch s.who {
	case "User: ":
		score += 0.6
	case "Tool: ":
		score -= 0.5
	}
	if s.first {
		score += 0.3
	}
	if len(s.words) < 3 {
		score--
	}
	return score
}

// repeats says whether nearly all that a sentence says was said.
func repeats(s *sentence, said map[string]bool) bool {
	known := 0
	for _, w := range s.words {
		if said[w] {
			known++
		}
	}
	return len(s.words) == 0 || known == len(s.words) || len(s.words) > 6 && float64(known) > 0.9*float64(len(s.words))
}

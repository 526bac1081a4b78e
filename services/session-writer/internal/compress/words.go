package compress

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// terms gives the words of a text by which it is compared with others: letters and digits of one script, in lower case, without particles of Korean and
// without words that are everywhere. Scripts that have no space between words give pairs of characters.
func terms(text string) (list []string) {
	begin, kind := 0, scriptNone
	flush := func(end int) {
		if kind != scriptNone {
			list = appendTerms(list, text[begin:end], kind)
		}
	}
	for i, r := range text {
		if k := scriptOf(r); k != kind {
			flush(i)
			begin, kind = i, k
		}
	}
	flush(len(text))
	return list
}

type script int

const (
	scriptNone script = iota
	scriptOther
	scriptHangul
	scriptIdeographic
)

func scriptOf(r rune) script {
	switch {
	case r < utf8.RuneSelf:
		if r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return scriptOther
		}
		return scriptNone
	case unicode.Is(unicode.Hangul, r):
		return scriptHangul
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
		return scriptIdeographic
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		return scriptOther
	}
	return scriptNone
}

func appendTerms(list []string, word string, kind script) []string {
	switch kind {
	case scriptHangul:
		if word = withoutParticle(word); utf8.RuneCountInString(word) > 1 {
			return append(list, word)
		}
		return list
	case scriptIdeographic:
		_, size := utf8.DecodeRuneInString(word)
		for at := size; at < len(word); {
			_, next := utf8.DecodeRuneInString(word[at:])
			list = append(list, word[at-size:at+next])
			at, size = at+next, next
		}
		return list
	default:
		word = strings.ToLower(word)
		if len(word) < 2 && (word < "0" || word > "9") || common[word] {
			return list
		}
		return append(list, word)
	}
}

// particles of Korean, longer ones first.
var particles = strings.Fields(`에서는 으로는 에게서 이라고 이라는 에서 에게 으로 부터 까지 처럼 보다 마다 이나 이랑 하고 라고 라는 은 는 이 가 을 를 에 의 도 로 와 과 만 랑`)

// withoutParticle takes the particle off a Korean word of which at least two syllables remain.
func withoutParticle(word string) string {
	for _, p := range particles {
		if stem, found := strings.CutSuffix(word, p); found && utf8.RuneCountInString(stem) >= 2 {
			return stem
		}
	}
	return word
}

var common = func() map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(`a an the and or but if then else of to in on at by for with from as is are was were be been being it its this that these those
		there here you your we our us they them their he she his her i me my not no yes do does did done have has had can could will would shall should may
		might must so than too very just also into out up down over about which who whom what when where why how all any each more most some such only own same
		s t d ll re ve m don let get got make use using used like one`) {
		set[w] = true
	}
	return set
}()

package compress

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Marks of what a conversation is looked up for later: who, how many, what was agreed, and names of code. They only add to what a sentence says about its
// topic, so that one that no mark knows can still be kept.
var (
	number     = regexp.MustCompile(`\d+(?:[.,:/-]\d+)*`)
	properName = regexp.MustCompile(`\S\s+["'(]?\p{Lu}[\p{L}\d-]+|\p{Lu}{2,}[\p{Lu}\d-]*|\p{Hangul}{2,4}\s?(?:님|씨|팀장|대리|과장|부장|차장|이사|대표|사장|교수|선생|박사|매니저|변호사|의원|고객)(?:[^\p{Hangul}]|\p{Hangul}{1,3}(?:[^\p{Hangul}]|$)|$)`)
	identifier = regexp.MustCompile("`[^`]+`" + `|\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z]+[A-Z]\w*\b|\b\w+_\w+\b|(?:^|\s)--?[a-z][\w-]+|\b\w+\(\)|(?:/[\w.-]+){2,}|\b[\w-]+\.(?:go|py|js|ts|tsx|java|rs|c|h|cpp|sql|sh|yaml|yml|json|toml|md|txt|csv|html|css|conf|env)\b|\bv?\d+\.\d+\.\d+`)
	address    = regexp.MustCompile(`https?://\S+|[\w.+-]+@[\w-]+\.\w+`)
	quoted     = regexp.MustCompile(`"[^"]{2,60}"|“[^”]{2,60}”|‘[^’]{2,60}’|「[^」]{2,60}」|'[^']{2,60}'`)

	filler = regexp.MustCompile(`(?i)^(?:sure|of course|certainly|absolutely|great|good (?:question|point|idea)|you're welcome|thank|thanks|okay|ok|got it|understood|hello|hi|hey|happy to|glad|let me know|feel free|here(?:'s| is| are)|hope (?:this|that)|is there anything|would you like|no problem|sounds good|i see|interesting)\b` +
		`|^(?:네|예|물론|안녕|감사|고맙|좋아요|좋습니다|알겠|그렇군|도움이|궁금한|언제든|더 필요|추가로 궁금|다른 질문|이해했|천만에|별말씀|수고)`)
	question = regexp.MustCompile(`[?？]["')]*$`)
)

// words are English words, in lower case, and pieces of Korean ones.
type words struct {
	english map[string]bool
	korean  []string
}

func newWords(english, korean string) words {
	w := words{map[string]bool{}, strings.Split(korean, "|")}
	for word := range strings.FieldsSeq(english) {
		w.english[word] = true
	}
	return w
}

func (w words) in(text string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }) {
		if w.english[strings.ToLower(word)] {
			return true
		}
	}
	return slices.ContainsFunc(w.korean, func(piece string) bool { return strings.Contains(text, piece) })
}

var (
	decision = newWords(`decide decides decided deciding decision decisions conclude concluded conclusion agree agrees agreed agreement chose chosen choose chooses
		picked settled final finally finalised finalized confirm confirms confirmed approve approved approval switch switched switching instead must never
		always require requires required requirement requirements deadline due promise promised rule rules policy forbid forbidden only remember note
		important because reason cause caused causes fix fixed result results plan plans planned rejected reject cancel cancelled canceled moved renamed
		rename limit limits budget cost costs password`,
		`결정|결론|하기로|정했|확정|합의|반드시|절대|기억해|잊지|마감|중요|대신|선택|승인|규칙|원칙|금지|필수|원인|때문|예산|비용|이유|결과|변경|취소|연기|바꾸|바꿨|목표|조건`)
	personal = newWords(`my mine our ours i'm i’m i've i’ve i we we're we’re we've am allergic birthday name named called call prefer prefers favourite favorite`,
		`저는|제가|제 |저희|우리|나는|내가|내 |이름은|이름이|알레르기|생일|좋아|싫어|선호|살고|사는 곳|다니|일하|못 먹|안 먹|않아요|않습니다`)
)

// counted adds a weight for each match, the third being the last that counts.
func counted(re *regexp.Regexp, text string, each float64) float64 {
	return each * float64(len(re.FindAllStringIndex(text, 3)))
}

func weighed(found bool, weight float64) float64 {
	if found {
		return weight
	}
	return 0
}

// Weights of the marks, against 1 for the sentence that is closest to the topic of the text. Their proportions were tried out on conversations of the tests.
const (
	weightTopic      = 0.4
	weightNumber     = 0.45
	weightName       = 0.35
	weightIdentifier = 0.35
	weightAddress    = 0.8
	weightQuoted     = 0.3
	weightDecision   = 0.6
	weightPersonal   = 0.8
	weightCode       = 0.8
	weightLead       = 0.15
	weightUser       = 0.7 // what the user says and does not ask
	weightScrap      = -1  // two or three words without any mark
	weightFiller     = -1.2
	weightQuestion   = -0.8
)

// scrap is the number of terms up to which a sentence says nothing by itself.
const scrap = 3

// signal says how much a unit with so many terms looks like something that is to be remembered, beside its topic.
func (u *unit) signal(words int) float64 {
	if u.code {
		return weightCode
	}
	text := u.text
	sum := counted(properName, text, weightName) + weighed(decision.in(text), weightDecision)
	if strings.ContainsAny(text, "0123456789") {
		sum += counted(number, text, weightNumber)
	}
	if strings.ContainsAny(text, "`_-/.(") || camel(text) {
		sum += counted(identifier, text, weightIdentifier)
	}
	if strings.Contains(text, "://") || strings.Contains(text, "@") {
		sum += weighed(address.MatchString(text), weightAddress)
	}
	if strings.ContainsAny(text, "\"'“‘「") {
		sum += weighed(quoted.MatchString(text), weightQuoted)
	}
	if u.speaker != Assistant && u.speaker != Tool {
		sum += weighed(personal.in(text), weightPersonal)
	}
	if sum == 0 && words <= scrap {
		return weightScrap
	}
	sum += weighed(filler.MatchString(text), weightFiller)
	switch {
	case question.MatchString(text):
		sum += weightQuestion
	case u.speaker == User:
		sum += weightUser
	}
	if u.lead {
		sum += weightLead
	}
	return sum
}

// camel says whether a capital letter follows a small one.
func camel(text string) bool {
	for i := 1; i < len(text); i++ {
		if 'A' <= text[i] && text[i] <= 'Z' && 'a' <= text[i-1] && text[i-1] <= 'z' {
			return true
		}
	}
	return false
}

// trust weighs a unit by who said it: what the user says counts more than what a model made of it, and output of tools is long and mostly repeated by
// the answer that follows it.
func (u *unit) trust() float64 {
	switch u.speaker {
	case Assistant:
		return 0.65
	case Tool:
		return 0.5
	}
	return 1
}

// shortened cuts a unit to a number of characters; a block of code stays one.
func (u *unit) shortened(limit int) string {
	text := strings.TrimSpace(Prefix(u.text, limit))
	if len(text) >= len(u.text) {
		return u.text
	}
	if fence := fenceOf(u.text); u.code && fence != "" {
		if i := strings.LastIndexByte(text, '\n'); i > 0 {
			text = text[:i]
		}
		return text + cutMark + fence
	}
	return text + " [...]"
}

package compress

import (
	"strings"
	"unicode"
)

// unit is the least that is kept or left out: a sentence or a block of code.
type unit struct {
	text    string // without white space around it
	code    bool
	speaker string // "" = not known
	passage int    // number of what is said at once
	line    int
	lead    bool // it begins a passage
}

// maxSentence is where text without an end of a sentence is divided, in characters.
const maxSentence = 400

// splitter divides a text into units.
type splitter struct {
	units   []unit
	speaker string
	passage int
	line    int
	lead    bool
}

// split gives the units of a text in order. Between them is nothing but white space and the names of speakers.
func split(text string) []unit {
	s := splitter{lead: true}
	for afterBlank := true; text != ""; {
		line, rest := cutLine(text)
		s.line++
		speaker, said := "", line
		if afterBlank {
			speaker, said = speakerOf(line)
		}
		if speaker != "" {
			s.speaker, s.lead = speaker, true
			s.passage++
			text = text[len(line)-len(said):]
		}
		if fence := fenceOf(said); fence != "" {
			n := codeLength(text, fence)
			s.add(text[:n], true)
			text, afterBlank = text[n:], strings.HasSuffix(strings.TrimRight(text[:n], " \t\r"), "\n\n")
			continue
		}
		for sentence := range sentences(said) {
			s.add(sentence, false)
		}
		text, afterBlank = rest, strings.TrimSpace(line) == ""
	}
	return s.units
}

func (s *splitter) add(text string, code bool) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	s.units = append(s.units, unit{text: text, code: code, speaker: s.speaker, passage: s.passage, line: s.line, lead: s.lead})
	s.lead = false
}

// cutLine gives the first line with its end, and what follows.
func cutLine(text string) (line, rest string) {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, ""
}

// fenceOf gives the characters that a line opens a block of code with, "" if it does not.
func fenceOf(line string) string {
	line = strings.TrimLeft(line, " \t")
	for _, fence := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, fence) && !strings.Contains(line[len(fence):], fence) {
			return fence
		}
	}
	return ""
}

// codeLength gives the length of the block of code that a text begins with, its fences included. One that nothing closes ends where somebody else speaks.
func codeLength(text, fence string) int {
	first, rest := cutLine(text)
	n, blank := len(first), false
	for rest != "" {
		var line string
		line, rest = cutLine(rest)
		if speaker, _ := speakerOf(line); speaker != "" && blank {
			break
		}
		n += len(line)
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
			break
		}
		blank = trimmed == ""
	}
	return n
}

// pieces divides a text that is too long for a unit, between words if possible.
func pieces(text string) (list []string) {
	for {
		head := Prefix(text, maxSentence)
		if len(head) == len(text) {
			return append(list, text)
		}
		if i := strings.LastIndexFunc(head, unicode.IsSpace); i > len(head)/2 {
			head = head[:i]
		}
		list = append(list, head)
		text = text[len(head):]
	}
}

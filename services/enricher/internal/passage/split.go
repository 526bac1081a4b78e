package passage

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sizes of parts, in characters. Small ones waste nothing on what does not answer; too small ones lose what they are about.
const (
	wholeParagraph = 320 // up to this size a paragraph stays whole
	sentences      = 160 // from this size on a group of sentences is a part
	longest        = 480 // of a part of a paragraph, also if no sentence ends
)

// part is a piece of a page that is kept or left out as a whole.
type part struct {
	text  string
	runes int
	join  string // what is between it and the part before
	needs []int  // parts that it is not understood without: its heading, the head of its table, the fences of its code
	about []int  // parts whose words count for it too: all headings above it, the head of its table
	head  bool   // a heading
}

// splitter makes parts of Markdown.
type splitter struct {
	parts []part
	path  []heading // the headings above
	join  string    // of the next part
}

type heading struct{ level, part int }

var (
	headingLine = regexp.MustCompile(`^(#{1,6})\s+\S`)
	itemLine    = regexp.MustCompile(`^\s*([-*+]|\d{1,9}[.)])\s+\S`)
	ruleCells   = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$`)
)

// split gives the parts of a text in Markdown: headings, items of lists, rows of tables, lines of code, sentences.
func split(text string) []part {
	s := &splitter{join: "\n\n"}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		line := strings.TrimRight(lines[i], " \t\r")
		switch {
		case line == "":
			s.join = "\n\n"
			i++
		case fence(line) != "":
			i = s.code(lines, i)
		case headingLine.MatchString(line):
			s.heading(line)
			i++
		case isRow(line):
			i = s.table(lines, i)
		default:
			i = s.paragraph(lines, i)
		}
	}
	return s.parts
}

func (s *splitter) push(p part) int {
	p.runes, p.join = utf8.RuneCountInString(p.text), s.join
	for _, h := range s.path {
		p.about = append(p.about, h.part)
	}
	if len(s.path) > 0 && !p.head {
		p.needs = append(p.needs, s.path[len(s.path)-1].part)
	}
	s.parts = append(s.parts, p)
	s.join = "\n"
	return len(s.parts) - 1
}

func (s *splitter) heading(line string) {
	level := strings.IndexFunc(line, func(r rune) bool { return r != '#' })
	for len(s.path) > 0 && s.path[len(s.path)-1].level >= level {
		s.path = s.path[:len(s.path)-1]
	}
	s.path = append(s.path, heading{level, s.push(part{text: line, head: true})})
	s.join = "\n\n"
}

// fence gives the mark that begins or ends code.
func fence(line string) string {
	line = strings.TrimLeft(line, " ")
	for _, mark := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, mark) {
			return mark
		}
	}
	return ""
}

// code takes a block of code: its lines are parts of their own, which need the fences.
func (s *splitter) code(lines []string, i int) int {
	mark := fence(lines[i])
	open := s.push(part{text: strings.TrimRight(lines[i], " \t\r")})
	first := len(s.parts)
	for i++; i < len(lines) && fence(lines[i]) != mark; i++ {
		if line := strings.TrimRight(lines[i], " \t\r"); line != "" {
			s.push(part{text: line, needs: []int{open}})
		}
	}
	last := len(s.parts)
	end := s.push(part{text: mark, needs: []int{open}})
	s.parts[open].needs = append(s.parts[open].needs, end)
	for j := first; j < last; j++ {
		s.parts[j].needs = append(s.parts[j].needs, end)
	}
	return i + 1
}

func isRow(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), "|") }

// table takes a table: each row needs the head.
func (s *splitter) table(lines []string, i int) int {
	head := -1
	if i+1 < len(lines) && ruleCells.MatchString(lines[i+1]) {
		head = s.push(part{text: strings.TrimSpace(lines[i]) + "\n" + strings.TrimSpace(lines[i+1])})
		i += 2
	}
	for ; i < len(lines) && isRow(lines[i]); i++ {
		row := part{text: strings.TrimSpace(lines[i])}
		if head >= 0 {
			row.needs, row.about = []int{head}, []int{head}
		}
		s.push(row)
	}
	return i
}

// paragraph takes lines up to an empty one, a heading, a table, code, or the next item of a list.
func (s *splitter) paragraph(lines []string, i int) int {
	begin := i
	for i++; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], " \t\r")
		if line == "" || fence(line) != "" || headingLine.MatchString(line) || isRow(line) || itemLine.MatchString(line) {
			break
		}
	}
	text := strings.TrimRightFunc(strings.Join(lines[begin:i], "\n"), unicode.IsSpace)
	if utf8.RuneCountInString(text) <= wholeParagraph {
		s.push(part{text: text})
		return i
	}
	for _, group := range groups(text) {
		s.push(part{text: group})
		s.join = " "
	}
	s.join = "\n"
	return i
}

// groups cuts a paragraph between sentences; a sentence without end is cut between words, or anywhere.
func groups(text string) []string {
	var (
		out   []string
		begin int  // of the group
		runes int  // in the group
		space int  // behind the last white space
		prev  rune // before, quotes and brackets that close left out
	)
	end := func(at int) {
		if group := strings.TrimSpace(text[begin:at]); group != "" {
			out = append(out, group)
		}
		begin, runes = at, 0
	}
	for i, r := range text {
		blank := unicode.IsSpace(r)
		switch {
		case runes >= sentences && (blank && strings.ContainsRune(".!?…", prev) || strings.ContainsRune("。！？", prev)):
			end(i)
		case runes >= longest && space > begin:
			end(space)
			runes = utf8.RuneCountInString(text[space:i])
		case runes >= longest:
			end(i)
		}
		runes++
		if blank {
			space = i + utf8.RuneLen(r)
		}
		if !strings.ContainsRune("\"'”’)」", r) {
			prev = r
		}
	}
	end(len(text))
	return out
}

package stream

import "strings"

// Think says what happens to <think> blocks.
type Think uint8

// Modes.
const (
	ThinkOff   Think = iota // left where they are
	ThinkSplit              // moved to reasoning_content
	ThinkStrip              // removed
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// splitter separates the text of one choice into content and reasoning. Tags match exactly; an opener inside a block and a closer outside
// of one are text. What could still become a tag is held until the next piece or the end.
type splitter struct {
	inside bool
	held   string // a beginning of the tag that would end the current part
}

// feed takes the next piece of text.
func (s *splitter) feed(text string) (content, reasoning string) {
	text = s.held + text
	s.held = ""
	var out [2]strings.Builder
	for {
		tag, part := thinkOpen, &out[0]
		if s.inside {
			tag, part = thinkClose, &out[1]
		}
		before, after, found := strings.Cut(text, tag)
		if !found {
			s.held = tagPrefix(text, tag)
			part.WriteString(text[:len(text)-len(s.held)])
			return out[0].String(), out[1].String()
		}
		part.WriteString(before)
		s.inside = !s.inside
		text = after
	}
}

// flush gives what is held at the end.
func (s *splitter) flush() (content, reasoning string) {
	held := s.held
	s.held = ""
	if s.inside {
		return "", held
	}
	return held, ""
}

// tagPrefix is the longest end of text that is a beginning of tag.
func tagPrefix(text, tag string) string {
	for n := min(len(text), len(tag)-1); n > 0; n-- {
		if end := text[len(text)-n:]; strings.HasPrefix(tag, end) {
			return end
		}
	}
	return ""
}

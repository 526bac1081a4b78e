package stream

import (
	"bytes"

	"hydrallm/shared/openai/rawjson"
)

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
//
// It works on the inner part of JSON strings as they came. An escaped character of a tag counts like the character, and everything else
// keeps its spelling, even half of a surrogate pair whose other half is in the next piece.
type splitter struct {
	inside bool
	held   []byte // the pieces of text that match the beginning of a tag
	match  int    // how many characters of the tag they match

	stated  bool   // thoughts came in a field for them
	details []byte // the last text of reasoning_details, which count where no thought is stated
}

// split is text that was separated, as inner parts of JSON strings.
type split struct {
	content, reasoning []byte
}

func (s *split) reset() { s.content, s.reasoning = s.content[:0], s.reasoning[:0] }

// plain says that feeding text would give it back as content.
func (s *splitter) plain(text []byte) bool { return !s.inside && s.match == 0 && tagStart(text, 0) < 0 }

// feed separates the next piece of text and appends it to out.
func (s *splitter) feed(out *split, text []byte) {
	for i := 0; i < len(text); {
		if s.match == 0 {
			end := tagStart(text, i)
			if end < 0 {
				s.put(out, text[i:])
				return
			}
			s.put(out, text[i:end])
			i = end
		}
		tag := thinkOpen
		if s.inside {
			tag = thinkClose
		}
		unit, n := rawjson.Unit(text[i:])
		if unit != uint16(tag[s.match]) { // "<" is only at the front of a tag, so no other beginning hides in what is held
			s.flush(out)
			continue
		}
		s.held = append(s.held, text[i:i+n]...)
		i += n
		if s.match++; s.match == len(tag) {
			s.inside = !s.inside
			s.held, s.match = s.held[:0], 0
		}
	}
}

// flush appends what is held as ordinary text: of the block if one is open, else of the content.
func (s *splitter) flush(out *split) {
	if s.match == 0 {
		return
	}
	s.put(out, s.held)
	s.held, s.match = s.held[:0], 0
}

func (s *splitter) put(out *split, text []byte) {
	if s.inside {
		out.reasoning = append(out.reasoning, text...)
	} else {
		out.content = append(out.content, text...)
	}
}

// tagStart finds the next "<" in the inner part of a JSON string, plain or escaped, or gives -1.
func tagStart(text []byte, from int) int {
	plain := bytes.IndexByte(text[from:], '<')
	end := len(text)
	if plain >= 0 {
		plain += from
		end = plain
	}
	for i := from; i < end; {
		escape := bytes.IndexByte(text[i:end], '\\')
		if escape < 0 {
			break
		}
		i += escape
		unit, n := rawjson.Unit(text[i:])
		if unit == '<' {
			return i
		}
		i += n
	}
	return plain
}

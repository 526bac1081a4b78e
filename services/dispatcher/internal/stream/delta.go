package stream

import (
	"bytes"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
)

// digitsToText makes strings of texts that are numbers: some upstreams read their own tokens as JSON.
func digitsToText(ch *answer.Choice) {
	for _, text := range []*[]byte{&ch.Content, &ch.ReasoningContent, &ch.Reasoning} {
		if raw := *text; len(raw) > 0 && (raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9') {
			*text, ch.Edited = answer.Quoted(raw), true
		}
	}
}

// editText takes the think blocks out of the content, or puts its parts together, and leaves one reasoning field (R-220, R-228, THK-10). An empty
// content is left out unless keep is set.
func (f *Filter) editText(s *splitter, ch *answer.Choice, last, keep bool) {
	content := ch.Content
	var thought []byte
	edited := false
	f.split.reset()
	switch {
	case f.opts.Uniform && isArray(content):
		f.split.take(content)
		edited = true
		if f.opts.Think != ThinkStrip {
			thought = f.split.reasoning
		}
	case f.opts.Think != ThinkOff && len(content) > 2 && answer.IsText(content): // another kind of content is left alone
		text := answer.Inner(content)
		if !s.plain(text) {
			s.feed(&f.split, text)
			if last {
				s.flush(&f.split)
			}
			edited = !bytes.Equal(f.split.content, text)
			if f.opts.Think == ThinkSplit {
				thought = f.split.reasoning
			}
		}
	}
	if edited {
		if ch.Content, ch.Edited = nil, true; len(f.split.content) > 0 || keep {
			ch.Content = answer.Quoted(f.split.content)
		}
	}
	f.editReasoning(s, ch, thought, edited)
}

// editReasoning leaves one reasoning field, with a thought that was found elsewhere at its end.
func (f *Filter) editReasoning(s *splitter, ch *answer.Choice, thought []byte, edited bool) {
	stated, alias := ch.ReasoningContent, ch.Reasoning
	own, other := answer.Inner(stated), answer.Inner(alias)
	if len(alias) > 0 && (len(own) == 0 || bytes.Equal(own, other)) { // one thought under two names is one (THK-10)
		if answer.IsText(alias) || string(alias) == "null" {
			ch.Reasoning, ch.Edited = nil, true
		}
		if len(own) == 0 {
			own = other
		}
	}
	if s.stated = s.stated || len(own) > 0; f.opts.Uniform && ch.Extra && !s.stated {
		thought = append(thought, s.detailed(rawjson.Get(ch.Delta, "reasoning_details"))...)
	}
	if len(thought) == 0 && bytes.Equal(own, answer.Inner(stated)) && (len(own) > 0 || len(stated) == 0 || !edited) {
		return
	}
	if ch.ReasoningContent, ch.Edited = nil, true; len(own)+len(thought) > 0 {
		ch.ReasoningContent = answer.Quoted(own, thought)
	}
}

package answer

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// Native makes a source of a stream of another protocol whose client speaks it too: with the first chunk of each event comes the event itself. One that
// means nothing to the hub is a comment.
func Native(events *openai.Reader, t Translator, of contract.Surface) Source {
	return &translated{events: events, to: native{t, of}}
}

// native is a Translator that hands the events on beside what they mean.
type native struct {
	Translator

	of contract.Surface
}

// Event translates an event. The queue is empty before.
func (n native) Event(out *Queue, e *openai.Event) (more bool) {
	more = n.Translator.Event(out, e)
	raw := passable(e)
	if raw == nil {
		return more
	}
	if out.Len() == 0 {
		out.Add(Comment)
	}
	first := out.chunks[out.taken]
	first.Raw, first.Of = raw, n.of
	return more
}

// passable gives the text of an event as a client may get it; nil for half a one at the end of a stream that was cut.
func passable(e *openai.Event) []byte {
	switch {
	case e.Cut:
		return nil
	case !e.Noncanonical:
		return e.Raw
	case e.Data == nil:
		return nil
	}
	var out []byte
	if len(e.Name) > 0 {
		out = append(append(append(out, "event: "...), e.Name...), '\n')
	}
	return openai.AppendData(out, e.Data)
}

package dialect

import (
	"context"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// TextCompletions is a dialect of OpenAI's API whose provider has Completions, the older protocol, beside Chat Completions: a client of it needs no
// translation.
type TextCompletions struct{ Dialect }

var _ Bypass = TextCompletions{}

// Surface is Completions.
func (TextCompletions) Surface() contract.Surface { return contract.SurfaceCompletions }

// Native passes the call on. The answer is read as well as it is translated, but passes as it is.
func (d TextCompletions) Native(ctx context.Context, call upstream.Call) (*Response, error) {
	resp, err := Plain(d.Pass(ctx, call, "/completions"))
	if err != nil {
		return nil, err
	}
	resp.Native, resp.Completion = contract.SurfaceCompletions, readText
	resp.Events = func(r *openai.Reader) answer.Source {
		return answer.Native(r, textEvents{}, contract.SurfaceCompletions)
	}
	return resp, nil
}

// CountTokens is nothing that clients of Completions ask for.
func (TextCompletions) CountTokens(context.Context, upstream.Call) (*upstream.Response, error) {
	return nil, ErrUnsupported
}

// readText fills an empty whole answer with what a body says. It is false when that is no answer.
func readText(out *answer.Chunk, body []byte) bool {
	var c answer.Chunk
	if c.Parse(body); !c.Valid || c.Error != nil || !c.HasChoices {
		return false
	}
	fillText(out, &c)
	return true
}

// textEvents reads a stream: its chunks are those of chat but for the text.
type textEvents struct{}

// Event reads one event.
func (textEvents) Event(out *answer.Queue, e *openai.Event) (more bool) {
	var c answer.Chunk
	c.Read(e)
	o := out.Add(c.Kind)
	switch {
	case c.Kind == answer.Problem, c.Kind == answer.Piece && !c.HasChoices && c.Usage == nil: // for whoever reads it to judge
		o.Data, o.Valid, o.HasChoices = c.Data, c.Valid, false
	case c.Kind == answer.Piece:
		fillText(o, &c)
	}
	return true
}

// End has nothing to add: the provider says when an answer is done.
func (textEvents) End(*answer.Queue) {}

// fillText puts what an answer says into the hub.
func fillText(out, in *answer.Chunk) {
	out.ID, out.Created, out.Model, out.Usage = in.ID, in.Created, in.Model, in.Usage
	for i := range in.Choices {
		ch := out.Choose(in.Choices[i].Index)
		if text := rawjson.Get(in.Choices[i].Raw, "text"); len(text) > 0 && text[0] == '"' {
			ch.Content = text
		}
		ch.Finish = in.Choices[i].Finish
	}
}

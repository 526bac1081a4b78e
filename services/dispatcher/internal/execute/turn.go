package execute

import (
	"context"
	"errors"
	"log/slog"
	"time"
	"unicode/utf8"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	hub "hydrallm/services/dispatcher/internal/surface/chat"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// Turns keeps what is answered in sessions; it returns when that is safe.
type Turns interface {
	Keep(ctx context.Context, t *contract.Turn) error
}

const (
	keepLimit = 5 * time.Second // for keeping an answer; then the client gets it all the same
	maxKept   = 1 << 20         // bytes of an answer that are kept, about
)

// inSession says whether the request belongs to a session.
func (r *run) inSession() bool {
	return r.job.Request.SessionID != "" && r.job.Request.Operation == contract.Chat
}

// Headers of answers in a session.
const (
	headerSession        = "X-Session-Id"
	headerSessionWarning = "X-Session-Warning"
	noHistory            = "the history could not be read; the question and the answer will be stored later"
)

// withSession adds the headers of a session.
func (r *run) withSession(header [][2]string) [][2]string {
	if !r.inSession() {
		return header
	}
	header = append(header, [2]string{headerSession, r.job.Request.SessionID})
	if r.job.Request.NoHistory {
		header = append(header, [2]string{headerSessionWarning, noHistory})
	}
	return header
}

// keep makes a fact of what is answered in a session. It comes before the end of the answer reaches the client, so that whoever goes on at once finds it.
// A failure is only told.
func (a *attempt) keep(ctx context.Context, kind contract.TurnKind, whole *answer.Chunk, out surface.Answer, truncated bool) {
	r := a.run
	if errors.Is(context.Cause(ctx), classify.ErrClientGone) {
		kind = contract.TurnFailed
	}
	message := hubMessage(whole)
	if message == nil {
		return
	}
	if len(message) > maxKept && !truncated {
		message, truncated = shortened(message), true
	}
	if truncated && rawjson.Get(message, "tool_calls") != nil { // the half of a call is of no use
		kind = contract.TurnFailed
	}
	request, index := r.job.Request, 0
	if a.held.key != nil {
		index = a.held.key.Index
	}
	t := contract.Turn{
		Session: request.SessionID, RequestID: request.ID, Principal: request.Principal, Surface: request.Surface,
		Unsaved: request.NoHistory, Model: a.link.Model, Provider: a.link.Channel.Provider, KeyIndex: index, Tokens: a.usage.Total,
		LatencyMS: time.Since(request.ReceivedAt).Milliseconds(), Truncated: truncated, At: time.Now().UTC(), Kind: kind,
	}
	kept := contract.Message{Body: message}
	if o, ok := out.(surface.Keeping); ok && !truncated {
		kept.Original = o.Original()
	}
	t.Add(kept)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepLimit)
	defer cancel()
	if err := r.exec.Turns.Keep(ctx, &t); err != nil {
		r.exec.Log.WarnContext(ctx, "an answer of a session is not stored", slog.String("kind", string(kind)), slog.Any("error", err))
	}
}

// hubMessage gives the message of the first choice of a whole answer as Chat Completions has it, nil if there is none. Some servers leave out the role, or
// call the assistant something else, and so does who answers Completions; a history needs it.
func hubMessage(c *answer.Chunk) []byte {
	whole := hub.NewAnswer(surface.Disclosure{}, false).Whole(c)
	choices := rawjson.Get(whole, "choices")
	for span := range rawjson.Elements(choices) {
		message := rawjson.Get(span.Of(choices), "message")
		switch {
		case len(message) == 0 || message[0] != '{':
			return nil
		case rawjson.Is(rawjson.Get(message, "role"), "assistant"):
			return message
		}
		return rawjson.AppendSet(nil, message, "role", []byte(`"assistant"`))
	}
	return nil
}

// shortened gives the beginning of the text of a message that is too long to be kept.
func shortened(message []byte) []byte {
	text := rawjson.Text(rawjson.Get(message, "content"))
	if len(text) > maxKept {
		end := maxKept
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	out := rawjson.AppendString([]byte(`{"role":"assistant","content":`), text)
	if calls := rawjson.Get(message, "tool_calls"); calls != nil {
		out = append(out, `,"tool_calls":[]`...)
	}
	return append(out, '}')
}

// transcript keeps what a stream says, up to a size. The zero value keeps nothing.
type transcript struct {
	said      *stream.Transcript
	size      int
	truncated bool
}

func (t *transcript) take(chunks []*answer.Chunk) {
	if t.said == nil || t.truncated {
		return
	}
	for _, c := range chunks {
		t.size += c.Size()
	}
	if t.truncated = t.size > maxKept; !t.truncated {
		t.said.Take(chunks)
	}
}

// keep keeps what was said.
func (t *transcript) keep(ctx context.Context, a *attempt, out surface.Answer, kind contract.TurnKind) {
	if t.said != nil {
		a.keep(ctx, kind, t.said.Whole(), out, t.truncated)
	}
}

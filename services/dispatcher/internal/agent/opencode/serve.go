package opencode

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"hydrallm/services/dispatcher/internal/agent/prompt"
	"hydrallm/services/dispatcher/internal/agent/task"
	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
)

// cleanupLimit is the time that it may take to end a session.
const cleanupLimit = 15 * time.Second

// serve asks a server.
func (a *Agent) serve(ctx context.Context, t *task.Task, call upstream.Call, p prompt.Prompt, m model) (*dialect.Response, error) {
	s := newServer(a.client, call, call.RequestTimeout+cleanupLimit) // the clocks of the task go off before
	health, err := s.get(ctx, healthPath)
	switch {
	case err != nil:
		return nil, err
	case !health.ok():
		return respond(t, health.failure()), nil
	case !health.healthy():
		return respond(t, newFailure(http.StatusBadGateway, "UnknownError", "The server is no OpenCode that is well")), nil
	}
	opened, err := s.post(ctx, "/session", []byte(session))
	switch {
	case err != nil:
		return nil, err
	case !opened.ok():
		return respond(t, opened.failure()), nil
	}
	id := opened.json().Get("id").Str
	if id == "" {
		return respond(t, newFailure(http.StatusBadGateway, "UnknownError", "The session that was made has no id")), nil
	}
	turn := newTurn(s, id, m, call.Stream)
	if err := turn.begin(ctx, message(p, m)); err != nil {
		a.end(ctx, turn)
		return nil, err
	}
	if call.Stream {
		return a.stream(ctx, t, turn)
	}
	return a.whole(ctx, t, turn)
}

// whole waits for the end of a turn.
func (a *Agent) whole(ctx context.Context, t *task.Task, turn *turn) (*dialect.Response, error) {
	defer a.end(ctx, turn)
	for !turn.over {
		if err := turn.step(ctx); err != nil {
			return nil, err
		}
	}
	if turn.failure != nil {
		return respond(t, *turn.failure), nil
	}
	return turn.answer().Response(t.Answer(http.StatusOK, "application/json", nil), false), nil
}

// stream waits for the beginning of an answer, so that a turn that fails before has a status.
func (a *Agent) stream(ctx context.Context, t *task.Task, turn *turn) (*dialect.Response, error) {
	for !turn.over && turn.out.Len() == 0 {
		if err := turn.step(ctx); err != nil {
			a.end(ctx, turn)
			return nil, err
		}
	}
	if turn.failure != nil && !turn.begun {
		a.end(ctx, turn)
		return respond(t, *turn.failure), nil
	}
	resp := t.Stream(func() { a.end(ctx, turn) })
	return &dialect.Response{Response: resp, Kind: dialect.Events, Events: func(*openai.Reader) answer.Source { return events{turn, ctx} }}, nil
}

// events is a stream while it is read.
type events struct {
	turn *turn
	ctx  context.Context //nolint:containedctx // the lifetime of the call
}

// Next waits for the next piece of the answer.
func (e events) Next() (*answer.Chunk, error) {
	for e.turn.out.Len() == 0 {
		if e.turn.over {
			return nil, io.EOF
		}
		if err := e.turn.step(e.ctx); err != nil {
			return nil, err
		}
	}
	return e.turn.out.Next()
}

// Buffered says whether a piece waits.
func (e events) Buffered() bool { return e.turn.out.Buffered() }

// end stops a turn, wherever it is, and takes its session away in the background. Only the first call does.
func (a *Agent) end(ctx context.Context, turn *turn) {
	turn.ended.Do(func() {
		turn.cancel()
		running := !turn.over || turn.failure != nil
		a.cleanups.Go(func() {
			turn.tasks.Wait()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
			defer cancel()
			turn.server.remove(ctx, turn.session, running)
		})
	})
}

// remove takes a session away. If that fails nobody is left to tell; an idle session stays on the server then.
func (s server) remove(ctx context.Context, session string, running bool) {
	path := "/session/" + url.PathEscape(session)
	if running {
		_, _ = s.post(ctx, path+"/abort", nil)
	}
	_, _ = s.do(ctx, http.MethodDelete, path, nil)
}

package opencode

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"hydrallm/services/dispatcher/internal/agent/prompt"
	"hydrallm/services/dispatcher/internal/agent/task"
	"hydrallm/services/dispatcher/internal/upstream"
)

// cleanupLimit is the time that it may take to end a session.
const cleanupLimit = 5 * time.Second

// serve asks a server.
func (a *Agent) serve(ctx context.Context, t *task.Task, call upstream.Call, p prompt.Prompt, m model) (*upstream.Response, error) {
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
func (a *Agent) whole(ctx context.Context, t *task.Task, turn *turn) (*upstream.Response, error) {
	defer a.end(ctx, turn)
	for !turn.over {
		if err := turn.step(ctx); err != nil {
			return nil, err
		}
	}
	if turn.failure != nil {
		return respond(t, *turn.failure), nil
	}
	return t.Answer(http.StatusOK, "application/json", turn.answer().JSON()), nil
}

// stream waits for the beginning of an answer, so that a turn that fails before has a status.
func (a *Agent) stream(ctx context.Context, t *task.Task, turn *turn) (*upstream.Response, error) {
	for !turn.over && len(turn.out) == 0 {
		if err := turn.step(ctx); err != nil {
			a.end(ctx, turn)
			return nil, err
		}
	}
	if turn.failure != nil && !turn.begun {
		a.end(ctx, turn)
		return respond(t, *turn.failure), nil
	}
	return t.Stream(&body{agent: a, turn: turn, ctx: ctx}), nil
}

// body is a stream while it is read.
type body struct {
	agent *Agent
	turn  *turn
	ctx   context.Context //nolint:containedctx // the lifetime of the call
}

// Read waits for the next piece of the answer.
func (b *body) Read(p []byte) (int, error) { return b.turn.read(b.ctx, p) }

// Close ends the turn, wherever it is.
func (b *body) Close() error {
	b.agent.end(b.ctx, b.turn)
	return nil
}

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

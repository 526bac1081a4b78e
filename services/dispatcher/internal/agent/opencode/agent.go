package opencode

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"hydrallm/services/dispatcher/internal/agent/program"
	"hydrallm/services/dispatcher/internal/agent/prompt"
	"hydrallm/services/dispatcher/internal/agent/task"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
)

// Config says where the program is.
type Config struct {
	// Program answers when the server of a call can't be reached, or when a call has no URL. It is a path or a name in PATH; "" for none.
	Program string
	// Env is the environment of the program, see program.Environment. It finds the settings of its user by HOME.
	Env []string
}

// Agent is OpenCode. It is safe for concurrent use.
//
// The URL of a call is the address of a server, its Key the password. An Authorization header of the call takes the place of the one that
// is made from the password; the header x-opencode-directory, or directory= in the query of the URL, names the project. The model of a
// request is "provider/model"; "" or "auto" is the one that OpenCode is set to.
type Agent struct {
	cfg      Config
	client   dialect.Client
	cleanups sync.WaitGroup
}

var _ dialect.Dialect = (*Agent)(nil)

// New makes an agent that reaches servers through client.
func New(cfg Config, client dialect.Client) *Agent { return &Agent{cfg: cfg, client: client} }

// Close waits until the sessions of all calls are gone from their servers, which takes a few seconds at most. The calls must have ended.
func (a *Agent) Close() { a.cleanups.Wait() }

// Embed is nothing that OpenCode can do.
func (*Agent) Embed(context.Context, upstream.Call) (*upstream.Response, error) {
	return nil, fmt.Errorf("embeddings of OpenCode: %w", dialect.ErrUnsupported)
}

// Pass is nothing that OpenCode can do.
func (*Agent) Pass(context.Context, upstream.Call, string) (*upstream.Response, error) {
	return nil, dialect.ErrUnsupported
}

// Health asks the server of a call, of which URL, Key, Header and RequestTimeout count, whether it is well, and gives its version (B-41).
func (a *Agent) Health(ctx context.Context, call upstream.Call) (version string, err error) {
	health, err := newServer(a.client, call, call.RequestTimeout).get(ctx, healthPath)
	switch {
	case err != nil:
		return "", fmt.Errorf("asking OpenCode for its health: %w", err)
	case !health.healthy():
		return "", fmt.Errorf("%w: status %d", errUnhealthy, health.status)
	}
	return health.json().Get("version").Str, nil
}

var errUnhealthy = errors.New("OpenCode does not say that it is well")

// Chat answers a request in a session of its own. A failure of the turn, which OpenCode may report with status 200, is a response with the
// status that suits it and OpenCode's own error as its body, or, in a stream that has begun, an error event.
func (a *Agent) Chat(ctx context.Context, call upstream.Call) (*dialect.Response, error) {
	p, err := prompt.Read(call.Body)
	if err != nil {
		return nil, err
	}
	ctx, t := task.Begin(ctx, call)
	resp, err := a.ask(ctx, t, call, p)
	if err != nil {
		return nil, t.Fail(err)
	}
	return resp, nil
}

// ask asks the server or, where there is none, the program.
func (a *Agent) ask(ctx context.Context, t *task.Task, call upstream.Call, p prompt.Prompt) (*dialect.Response, error) {
	m, ok := readModel(p.Model)
	switch {
	case !ok:
		return respond(t, unknownModel(p.Model)), nil
	case call.URL == "":
		return a.run(ctx, t, p, m, call.Stream)
	}
	resp, err := a.serve(ctx, t, call, p, m)
	if a.cfg.Program == "" || !task.Unreachable(err) {
		return resp, err
	}
	resp, runErr := a.run(ctx, t, p, m, call.Stream)
	if errors.Is(runErr, program.ErrMissing) {
		return nil, err
	}
	return resp, runErr
}

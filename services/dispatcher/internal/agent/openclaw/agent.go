package openclaw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/agent/task"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Config says where the program is.
type Config struct {
	// Program answers when a call has no URL, or there is no endpoint at its URL. It is a path or a name in PATH; "" for none.
	Program string
	// Env is the environment of the program, see program.Environment. It finds the settings of its user by HOME.
	Env []string
	// Agent is the one that the program asks where a request names none; "" for "main".
	Agent string
}

// Agent is OpenClaw. The URL of a call is the base URL of a gateway, such as http://127.0.0.1:18789/v1, its Key the token or password. It is
// safe for concurrent use.
type Agent struct {
	cfg    Config
	client dialect.Client
	http   dialect.OpenAI
	local  chan struct{} // has room for one: the program can't work for itself twice at a time
}

var _ dialect.Dialect = (*Agent)(nil)

// New makes an agent that reaches gateways through client.
func New(cfg Config, client dialect.Client) *Agent {
	return &Agent{cfg: cfg, client: client, http: dialect.OpenAI{Client: client}, local: make(chan struct{}, 1)}
}

// modelHeader names the model behind an agent.
const modelHeader = "X-Openclaw-Model"

// Chat answers a request.
func (a *Agent) Chat(ctx context.Context, call upstream.Call) (*dialect.Response, error) {
	to := readTarget(gjson.GetBytes(call.Body, "model").Str)
	if call.URL == "" {
		return a.run(ctx, call, to, true)
	}
	resp, err := a.http.Chat(ctx, prepared(call, to))
	switch {
	case err != nil && a.cfg.Program != "" && task.Unreachable(err):
		return a.insteadOf(ctx, call, to, err)
	case err != nil || resp.Status/100 == 2:
		return resp, err
	}
	text, err := peek(resp.Response)
	switch {
	case err != nil:
		resp.Close()
		return nil, err
	case resp.Status == http.StatusNotFound && a.cfg.Program != "" && !gjson.ValidBytes(text):
		return a.besides(ctx, call, to, resp)
	case resp.Status == http.StatusBadRequest && strings.HasPrefix(gjson.GetBytes(text, "error.message").Str, "Unknown agent"):
		resp.Status = http.StatusNotFound // what is missing is the model, and the request is not at fault
	}
	return resp, nil
}

// insteadOf has the program do the work of a gateway that is not there. If that can't be, the gateway is what is missing.
func (a *Agent) insteadOf(ctx context.Context, call upstream.Call, to target, err error) (*dialect.Response, error) {
	resp, runErr := a.run(ctx, call, to, true)
	if impossible(runErr) {
		return nil, err
	}
	return resp, runErr
}

// besides has the program find its way to a gateway whose endpoint is switched off.
func (a *Agent) besides(ctx context.Context, call upstream.Call, to target, off *dialect.Response) (*dialect.Response, error) {
	resp, err := a.run(ctx, call, to, false)
	if impossible(err) {
		return off, nil
	}
	off.Close()
	return resp, err
}

// impossible says that the program was not asked.
func impossible(err error) bool {
	_, refused := errors.AsType[*openai.RequestError](err)
	return refused || errors.Is(err, errNoProgram)
}

// Embed passes a request for embeddings on.
func (a *Agent) Embed(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	to := readTarget(gjson.GetBytes(call.Body, "model").Str)
	if to.bare {
		to = target{model: to.agent}
	}
	return a.http.Embed(ctx, prepared(call, to))
}

// Pass is nothing that OpenClaw can do.
func (*Agent) Pass(context.Context, upstream.Call, string) (*upstream.Response, error) {
	return nil, dialect.ErrUnsupported
}

var errUnhealthy = errors.New("the gateway of OpenClaw does not list its agents")

// Health asks the gateway of a call, of which URL, Key, Header and the limits of time count, whether its endpoint answers (B-41).
func (a *Agent) Health(ctx context.Context, call upstream.Call) error {
	call.Method, call.URL, call.Body, call.Stream = http.MethodGet, dialect.Operation(call.URL, "/models"), nil, false
	call.Header = cloned(call.Header)
	if call.Key != "" {
		call.Header.Set("Authorization", "Bearer "+call.Key)
	}
	resp, err := a.client.Do(ctx, call)
	if err != nil {
		return fmt.Errorf("asking OpenClaw for its health: %w", err)
	}
	defer resp.Close()
	text, err := peek(resp)
	if err != nil {
		return fmt.Errorf("asking OpenClaw for its health: %w", err)
	}
	if resp.Status/100 != 2 || !gjson.GetBytes(text, "data").IsArray() {
		return fmt.Errorf("%w: status %d", errUnhealthy, resp.Status)
	}
	return nil
}

// prepared is a call in OpenClaw's words. The operator's own header wins.
func prepared(call upstream.Call, to target) upstream.Call {
	call.Header = cloned(call.Header)
	if to.model != "" && call.Header.Get(modelHeader) == "" {
		call.Header.Set(modelHeader, to.model)
	}
	if gjson.ValidBytes(call.Body) {
		call.Body = rawjson.AppendSet(nil, call.Body, "model", rawjson.AppendString(nil, to.name()))
		if rawjson.Get(call.Body, "user") != nil {
			call.Body = rawjson.AppendDelete(nil, call.Body, "user")
		}
	}
	return call
}

func cloned(h http.Header) http.Header {
	if h == nil {
		return http.Header{}
	}
	return h.Clone()
}

// maxPeek bounds what is read of an answer to see what it is.
const maxPeek = 256 << 10

// peek reads the beginning of a body and puts it back.
func peek(resp *upstream.Response) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPeek))
	resp.Body = io.MultiReader(bytes.NewReader(text), resp.Body)
	return text, err
}

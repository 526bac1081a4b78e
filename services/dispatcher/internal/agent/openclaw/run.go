package openclaw

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"hydrallm/services/dispatcher/internal/agent/program"
	"hydrallm/services/dispatcher/internal/agent/prompt"
	"hydrallm/services/dispatcher/internal/agent/task"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
)

const (
	maxOutput    = 64 << 20
	maxMessage   = 4 << 20 // bytes that the program takes
	defaultAgent = "main"
)

// errNoProgram says that the program can't be asked at all: it is not there, or the request is not one that it takes.
var errNoProgram = errors.New("the program of OpenClaw can't answer this")

// run asks the program. It answers when all is said, so a stream comes in one piece. With local it does without a gateway.
func (a *Agent) run(ctx context.Context, call upstream.Call, to target, local bool) (*dialect.Response, error) {
	p, err := prompt.Read(call.Body)
	if err != nil {
		return nil, err
	}
	if len(p.Files) > 0 || len(p.Whole()) > maxMessage {
		return nil, fmt.Errorf("%w: files, or more text than it takes", errNoProgram)
	}
	ctx, t := task.Begin(ctx, call)
	if local {
		select {
		case a.local <- struct{}{}:
			defer func() { <-a.local }()
		case <-ctx.Done():
			return nil, t.Fail(context.Cause(ctx))
		}
	}
	out, err := a.execute(ctx, p, to, local, strconv.FormatFloat(math.Ceil(call.RequestTimeout.Seconds()), 'f', 0, 64))
	if errors.Is(err, program.ErrMissing) {
		err = errors.Join(errNoProgram, err)
	}
	if err != nil {
		return nil, t.Fail(fmt.Errorf("asking OpenClaw: %w", err))
	}
	answer, failure := readOutput(out.Text)
	switch {
	case failure != nil:
		return refusal(t, failure), nil
	case out.Status != 0:
		return refusal(t, failed(http.StatusBadGateway, "The program ended with status "+strconv.Itoa(out.Status))), nil
	}
	return answer.Response(t.Answer(http.StatusOK, "application/json", nil), call.Stream), nil
}

func refusal(t *task.Task, f *failure) *dialect.Response {
	return &dialect.Response{Response: t.Answer(f.status, "application/json", f.body())}
}

// execute runs the program with the conversation in a file.
func (a *Agent) execute(ctx context.Context, p prompt.Prompt, to target, local bool, seconds string) (program.Output, error) {
	dir, err := os.MkdirTemp("", "openclaw-")
	if err != nil {
		return program.Output{}, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // no reason to throw an answer away; what stays in the temporary directory only its owner can read
	message := filepath.Join(dir, "message.txt")
	if err := os.WriteFile(message, []byte(p.Whole()), 0o600); err != nil {
		return program.Output{}, err
	}
	args := []string{
		"agent", "--agent=" + cmp.Or(to.agent, a.cfg.Agent, defaultAgent), "--session-id=" + newID(), "--message-file=" + message, "--json",
		"--timeout=" + seconds,
	}
	if to.model != "" {
		args = append(args, "--model="+to.model)
	}
	if local {
		args = append(args, "--local")
	}
	return program.Run(ctx, program.Command{Program: a.cfg.Program, Args: args, Dir: dir, Env: a.cfg.Env, MaxOutput: maxOutput})
}

// newID makes a session id in the form of a UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

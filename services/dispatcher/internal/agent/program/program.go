package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

var (
	// ErrMissing says that there is no such program on this machine.
	ErrMissing = errors.New("the program is not installed")
	// ErrTooMuch says that a program printed more than it may, and was ended for it.
	ErrTooMuch = errors.New("the program printed too much")
)

// grace is how long a program may take to end on its own when it is told to, and how long what it started may keep its output open.
const grace = 2 * time.Second

// Command is a program with what it is told.
type Command struct {
	Program   string   // a path, or a name that is looked up in PATH
	Args      []string // neither secrets nor anything that a client wrote
	Dir       string   // where it runs
	Env       []string // its whole environment
	Input     []byte   // its standard input
	MaxOutput int      // bytes
}

// Output is what became of a program.
type Output struct {
	Text   []byte // of its standard output: valid UTF-8
	Status int    // that it ended with; -1 when it was killed by others
}

// Run runs a program to its end. A status that is not zero is no error. When ctx ends, the program and all that it started are told to end
// and, after a moment, killed; the error is the cause of ctx then. What the program complains about is not kept: it may quote its input.
func Run(ctx context.Context, c Command) (Output, error) {
	path, err := exec.LookPath(c.Program)
	if err != nil {
		return Output{}, fmt.Errorf("finding %s: %w", c.Program, errors.Join(ErrMissing, err))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &capture{room: c.MaxOutput, over: func() { cancel(ErrTooMuch) }}
	cmd := exec.CommandContext(ctx, path, c.Args...)       //nolint:gosec // the program is the operator's choice, and no argument is a client's
	cmd.Dir, cmd.Env = c.Dir, append([]string{}, c.Env...) // never nil, which would mean all of the gateway's own
	cmd.Stdin, cmd.Stdout = bytes.NewReader(c.Input), out
	cmd.WaitDelay = grace
	own(cmd)
	if err := cmd.Start(); err != nil {
		return Output{}, fmt.Errorf("starting %s: %w", c.Program, err)
	}
	err = cmd.Wait()
	killAll(cmd) // what outlived it
	if cause := context.Cause(ctx); cause != nil {
		return Output{}, cause
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay) {
		return Output{}, fmt.Errorf("running %s: %w", c.Program, err)
	}
	return Output{Text: bytes.ToValidUTF8(out.text.Bytes(), []byte("\ufffd")), Status: cmd.ProcessState.ExitCode()}, nil
}

// capture keeps what is written to it, up to a limit.
type capture struct {
	text bytes.Buffer
	room int
	over func()
}

// Write never fails, so that the program is not stopped by its output but by whoever over tells.
func (c *capture) Write(p []byte) (int, error) {
	if c.room -= len(p); c.room < 0 {
		c.over()
		return len(p), nil
	}
	return c.text.Write(p)
}

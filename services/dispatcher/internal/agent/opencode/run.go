package opencode

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hydrallm/services/dispatcher/internal/agent/program"
	"hydrallm/services/dispatcher/internal/agent/prompt"
	"hydrallm/services/dispatcher/internal/agent/task"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/openai"
)

// maxOutput bounds what the program may print.
const maxOutput = maxAnswer

// run asks the program. It answers when all is said, so a stream comes in one piece.
func (a *Agent) run(ctx context.Context, t *task.Task, p prompt.Prompt, m model, stream bool) (*dialect.Response, error) {
	dir, err := os.MkdirTemp("", "opencode-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for OpenCode: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // no reason to throw an answer away; what stays in the temporary directory only its owner can read
	args := []string{"run", "--format=json", "--title=gateway"}
	if m != (model{}) {
		args = append(args, "--model="+m.String())
	}
	files, err := writeFiles(dir, p.Files)
	if err != nil {
		return nil, err
	}
	// The session is kept beside the files, and goes with them.
	env := append(slices.Clone(a.cfg.Env), `OPENCODE_PERMISSION={"*":"deny"}`, "OPENCODE_DISABLE_AUTOUPDATE=1",
		"OPENCODE_DB="+filepath.Join(dir, "opencode.db"))
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return nil, fmt.Errorf("making a directory for OpenCode: %w", err)
	}
	out, err := program.Run(ctx, program.Command{
		Program: a.cfg.Program, Args: append(args, files...), Dir: work, Env: env, Input: []byte(p.Whole()), MaxOutput: maxOutput,
	})
	if err != nil {
		return nil, fmt.Errorf("asking OpenCode: %w", err)
	}
	spoken, failure := readOutput(out.Text, m)
	switch {
	case failure != nil:
		return respond(t, *failure), nil
	case out.Status != 0 || len(spoken.order) == 0:
		return respond(t, newFailure(http.StatusBadGateway, "UnknownError", "The program ended with status "+strconv.Itoa(out.Status))), nil
	}
	return spoken.answer().Response(t.Answer(http.StatusOK, "application/json", nil), stream), nil
}

// writeFiles puts the files of a prompt where the program finds them, and gives the arguments that name them.
func writeFiles(dir string, files []prompt.File) (args []string, err error) {
	for i, f := range files {
		_, data, _ := strings.Cut(f.URL, ",")
		content, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, &openai.RequestError{Message: "A file or image is not valid base64.", Code: openai.CodeInvalidValue}
		}
		path := filepath.Join(dir, fmt.Sprintf("attachment-%d%s", i+1, ending(f)))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, fmt.Errorf("writing a file for OpenCode: %w", err)
		}
		args = append(args, "--file="+path)
	}
	return args, nil
}

// ending is what the name of a file must end with so that the program knows its type.
func ending(f prompt.File) string {
	switch _, sub, _ := strings.Cut(f.Type, "/"); sub {
	case "png", "gif", "webp", "pdf", "wav":
		return "." + sub
	case "jpeg":
		return ".jpg"
	case "mpeg", "mp3":
		return ".mp3"
	}
	return ".txt"
}

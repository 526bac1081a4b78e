package binaries

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/doctest"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/machine"
	"hydrallm/shared/testkit/processtest"
)

const repositoryRoot = "../../../.."

// the commands of the README and the documents do what the pages say, one after the other, against the gateway that the page starts, or the demo.
// Providers of a gateway that is started with keys in the environment are a fake.
func TestCommandsOfTheDocs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "curl", "make"} {
		machine.Program(t, name)
	}
	binary, root := processtest.AllInOne(t), os.DirFS(repositoryRoot)
	upstream := fakellm.Start(t)
	upstream.Handle(fakellm.Talk("hello")) // whatever the model is called
	names, err := doctest.Pages(root)
	require.NoError(t, err)
	for _, name := range names {
		blocks, err := doctest.Read(root, name)
		require.NoError(t, err)
		if !slices.ContainsFunc(blocks, runs) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newShellPage(t, binary, upstream.URL())
			for _, b := range blocks {
				p.try(t, &b)
			}
		})
	}
}

// runs says whether a block is commands that are run.
func runs(b doctest.Block) bool {
	return b.Lang == doctest.Shell && (b.How == doctest.ByLanguage || b.How == doctest.Server)
}

// shellPage is where the commands of a page run: a directory with the files that the page shows and the binary where make build puts it.
type shellPage struct {
	dir, upstream string
	env           []string
	addr, data    string // of the gateway, "" before there is one
	gateway       *processtest.Process
}

func newShellPage(t *testing.T, binary, upstream string) *shellPage {
	t.Helper()
	p := &shellPage{dir: t.TempDir(), upstream: upstream}
	tools := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(p.dir, "bin"), 0o700))
	for _, link := range []string{filepath.Join(p.dir, "bin", "hydrallm"), filepath.Join(tools, "hydrallm")} {
		require.NoError(t, os.Symlink(binary, link))
	}
	p.write(t, filepath.Join(tools, "curl"), fmt.Sprintf("#!/bin/sh\nexec %s --fail-with-body --silent --show-error \"$@\"\n", machine.Program(t, "curl")))
	p.env = []string{"PATH=" + tools + ":" + os.Getenv("PATH"), "HOME=" + p.dir, "HOST=127.0.0.1", "ADMIN_API_KEY=demo"}
	return p
}

func (p *shellPage) write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
}

func (p *shellPage) try(t *testing.T, b *doctest.Block) {
	t.Helper()
	switch {
	case b.How == doctest.File:
		p.write(t, filepath.Join(p.dir, b.Value), b.Text)
	case b.How == doctest.Server && b.Value == "":
		p.serve(t, b.Text, b.Place())
	case b.How == doctest.Server:
		p.serve(t, b.Value, b.Place())
		p.run(t, b)
	case runs(*b):
		p.run(t, b)
	}
}

// addresses are those of the gateway in the documents.
var addresses = regexp.MustCompile(`(?:127\.0\.0\.1|localhost):(?:8000|8100)\b`)

func (p *shellPage) run(t *testing.T, b *doctest.Block) {
	t.Helper()
	text := b.Text
	if addresses.MatchString(text) {
		if p.addr == "" {
			p.serve(t, "hydrallm demo", "the demo for "+b.Place())
		}
		text = addresses.ReplaceAllLiteralString(text, p.addr)
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	cmd := p.shell(ctx, text+"\nexport -p >.exported\n")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	require.NoError(t, cmd.Run(), "%s:\n%s", b.Place(), out.String())
	t.Logf("%s: %s", b.Place(), strings.TrimSpace(out.String()))
}

// shell runs a script with what earlier ones have exported. Its first command that fails ends it.
func (p *shellPage) shell(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", "[ ! -e .exported ] || . ./.exported\nexport DATA_DIR="+p.data+"\n"+script)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// starts is the line that starts a gateway.
var starts = regexp.MustCompile(`((?:^|.* )(?:\S*hydrallm(?: serve| demo)?|make run))(?: +#.*)?\n?$`)

// keys are variables with keys of providers, which are the fake here.
var keys = regexp.MustCompile(`\b([A-Z]+)_API_KEY=`)

// serve runs a script whose last line starts a gateway, on a free port, with data of its own, in place of the one before.
func (p *shellPage) serve(t *testing.T, script, place string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(script), "\n")
	last := starts.FindStringSubmatch(lines[len(lines)-1])
	require.NotNil(t, last, "%s: the last line of a server starts a gateway", place)
	if p.gateway != nil {
		p.gateway.End(t, syscall.SIGTERM)
	}
	p.addr = freeport.Addr(t)
	p.data = filepath.Join(p.dir, "data-"+strings.TrimPrefix(p.addr, "127.0.0.1:"))
	_, port, err := net.SplitHostPort(p.addr)
	require.NoError(t, err)
	command := last[1] + " --port " + port
	if before, ok := strings.CutSuffix(last[1], "make run"); ok {
		command = before + madeBy(t, "--port "+port)
	}
	lines[len(lines)-1] = "exec env " + keys.ReplaceAllString(strings.Join(keys.FindAllString(script, -1), ""), "${1}_BASE_URL="+p.upstream+"/v1 ") + command
	p.gateway = processtest.Start(t, p.shell(context.WithoutCancel(t.Context()), strings.Join(lines, "\n")))
	p.gateway.AwaitReady(t, p.addr)
}

// madeBy is the command that make run begins after it has built the binary. It runs where the page runs, and not in the repository, where somebody may have a
// configuration.
func madeBy(t *testing.T, args string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), machine.Program(t, "make"), "-s", "-n", "-C", repositoryRoot, "run", "ARGS="+args)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // a make that runs the tests has flags for what it starts
	out, err := cmd.Output()
	require.NoError(t, err)
	command, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "go build -o bin/hydrallm ./services/hydrallm/cmd/hydrallm && exec ")
	require.True(t, ok, "make run is %s", out)
	return command
}

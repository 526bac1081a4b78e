// Package toolinstall installs tools of other makers on the machine of the gateway, which is remote code execution by design and so is off unless the
// operator switches it on. Only the tools of a fixed list are installed, from npm, at versions whose checksums are known here; no text of a
// caller gets into a command.
package toolinstall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Limits of R-337.
const (
	installLimit  = 300 * time.Second
	registerLimit = 60 * time.Second
	versionLimit  = 5 * time.Second
	lookLimit     = 30 * time.Second // for the checksum that the registry states
	tail          = 800              // characters of the output that are shown
)

// Errors.
var (
	ErrUnknown = errors.New("there is no such tool")
	ErrBusy    = errors.New("a tool is being installed already")
)

// tool is a program of the list.
type tool struct {
	name      string // of the program
	npm       string // package and version
	integrity string // that the registry must state for it; npm checks what it downloads against that
}

// The versions that were looked at.
var (
	openCode = tool{"opencode", "opencode-ai@1.18.33", "sha512-58P1ffLRXiAY4QeoABqUjqf6DEzm1ihpovvn9Ad+oOLbLiwK/rf88wruT9IATJ7AtNjmi8iA7pC8tN4o5y799Q=="}
	openClaw = tool{"openclaw", "openclaw@2026.9.6", "sha512-Ie0kyQSCVfFqixsgVg39vevUDq01Ch5u3+7Yu5Y3qARczmdAe+lzp8bVnO9925rHiW/+CFp70zfORCyPmCH31g=="}
)

// Names of what can be installed.
const (
	OpenCode     = "opencode"
	OpenClaw     = "openclaw"
	OpenClawAuto = "openclaw-mllm-auto" // OpenClaw, set up to use the gateway
)

func toolOf(name string) (t tool, ok bool) {
	switch name {
	case OpenCode:
		return openCode, true
	case OpenClaw, OpenClawAuto:
		return openClaw, true
	}
	return tool{}, false
}

// Instructions tell how to install a tool by hand.
func Instructions(name string) (text string, ok bool) {
	t, ok := toolOf(name)
	if !ok {
		return "", false
	}
	text = "npm install --global " + t.npm
	if name == OpenClawAuto {
		text += ", and in OpenClaw's configuration a provider openai with the base URL of this gateway and the model mllm/auto"
	}
	return text, true
}

// State is what is known of a tool on this machine.
type State struct {
	Installed bool   `json:"installed"`
	Path      string `json:"path"`
	Version   string `json:"version"` // "" when it is not asked for, or not told
}

// Installer installs one tool at a time.
type Installer struct {
	environ []string // of the programs that are run
	gateway string   // base URL of the gateway for programs on this machine

	mu sync.Mutex // held while a tool is installed
}

// New makes an installer. Programs see of environ, such as os.Environ(), only what they need: no keys.
func New(environ []string, gateway string) *Installer {
	return &Installer{environ: clean(environ), gateway: gateway}
}

// Status looks for the tools. Only with ask they are run, for their versions.
func (i *Installer) Status(ctx context.Context, ask bool) map[string]State {
	all := map[string]State{}
	for _, t := range []tool{openCode, openClaw} {
		s := State{}
		if path, err := i.look(t.name); err == nil {
			s.Installed, s.Path = true, path
			if ask {
				if out, err := i.run(ctx, versionLimit, t.name, "--version"); err == nil {
					s.Version, _, _ = strings.Cut(strings.TrimSpace(out), "\n")
				}
			}
		}
		all[t.name] = s
	}
	return all
}

// Install installs a tool and gives the end of what the programs said. The error is ErrUnknown, ErrBusy, or why it failed, with output too.
func (i *Installer) Install(ctx context.Context, name string) (output string, err error) {
	t, ok := toolOf(name)
	if !ok {
		return "", ErrUnknown
	}
	if !i.mu.TryLock() {
		return "", ErrBusy
	}
	defer i.mu.Unlock()
	if name != OpenClawAuto {
		return i.install(ctx, t)
	}
	if _, err := i.look(t.name); err != nil {
		if output, err := i.install(ctx, t); err != nil {
			return output, err
		}
	}
	return i.register(ctx)
}

func (i *Installer) install(ctx context.Context, t tool) (output string, err error) {
	stated, err := i.run(ctx, lookLimit, "npm", "view", t.npm, "dist.integrity")
	if err != nil {
		return stated, fmt.Errorf("asking npm for %s: %w", t.npm, err)
	}
	if strings.TrimSpace(stated) != t.integrity {
		return "", fmt.Errorf("the registry has another %s than the one that is known: it is not installed", t.npm)
	}
	output, err = i.run(ctx, installLimit, "npm", "install", "--global", "--no-audit", "--no-fund", t.npm)
	if err != nil {
		return output, fmt.Errorf("installing %s: %w", t.npm, err)
	}
	return output, nil
}

// Of the model that OpenClaw is set up for.
const (
	autoModel   = "mllm/auto"
	autoAgent   = "mllm-auto"
	autoContext = 131072
	autoOutput  = 8192
)

// register has OpenClaw use the gateway, through its own program, which knows where its configuration is.
func (i *Installer) register(ctx context.Context) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, registerLimit)
	defer cancel()
	provider, err := json.Marshal(map[string]any{
		"baseUrl": i.gateway + "/v1", "apiKey": "none", "api": "openai-completions",
		"models": []any{map[string]any{"id": autoModel, "name": "HydraLLM, automatic", "contextWindow": autoContext, "maxTokens": autoOutput}},
	})
	if err != nil {
		return "", fmt.Errorf("encoding the provider: %w", err)
	}
	var all strings.Builder
	for _, args := range [][]string{
		{"config", "set", "models.providers.openai", string(provider), "--json"},
		{"gateway", "restart"},
		{"agents", "add", autoAgent, "--model", "openai/" + autoModel, "--non-interactive"},
	} {
		out, err := i.run(ctx, registerLimit, openClaw.name, args...)
		all.WriteString(out)
		if err != nil {
			return last(all.String()), fmt.Errorf("openclaw %s %s: %w", args[0], args[1], err)
		}
	}
	return last(all.String()), nil
}

// run runs a program with fixed arguments and gives the end of what it says.
func (i *Installer) run(ctx context.Context, limit time.Duration, program string, args ...string) (output string, err error) {
	path, err := i.look(program)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // programs and arguments are constants
	cmd.Env, cmd.Dir = i.environ, os.TempDir()
	cmd.WaitDelay = versionLimit
	own(cmd)
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		killAll(cmd)
	}
	return last(string(out)), err
}

// look finds a program where the environment says that programs are.
func (i *Installer) look(program string) (path string, err error) {
	for _, assignment := range i.environ {
		name, dirs, _ := strings.Cut(assignment, "=")
		if !strings.EqualFold(name, "PATH") {
			continue
		}
		for _, dir := range filepath.SplitList(dirs) {
			if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil && filepath.IsAbs(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", program, exec.ErrNotFound)
}

// last gives the end of a text.
func last(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for utf8.RuneCountInString(text) > tail {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	return text
}

// passed are the variables that programs get: where programs, homes and proxies are, and the settings of npm. Names are compared without case.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "TEMP", "TMP", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "PROGRAMFILES",
}

func clean(environ []string) []string {
	kept := []string{}
	for _, assignment := range environ {
		name, _, _ := strings.Cut(assignment, "=")
		name = strings.ToUpper(name)
		secret := strings.Contains(name, "TOKEN") || strings.Contains(name, "AUTH") || strings.Contains(name, "PASSWORD")
		if slices.Contains(passed, name) || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "NPM_CONFIG_") && !secret {
			kept = append(kept, assignment)
		}
	}
	return kept
}

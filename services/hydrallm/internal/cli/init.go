package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hydrallm/services/hydrallm/internal/firstconfig"
	"hydrallm/services/hydrallm/internal/newfile"
	"hydrallm/services/hydrallm/internal/phrase"
)

type initCmd struct {
	Output string `short:"o" default:"config.yaml" help:"Where the configuration is written (${default})." placeholder:"FILE"`
	Yes    bool   `short:"y" help:"Ask nothing, and take what is found."`
	Force  bool   `help:"Replace the file if it is there already."`
}

// Run finds what can be used, asks when somebody is there to answer, and writes a configuration.
func (c initCmd) Run(a *App) error {
	output := c.Output
	if !filepath.IsAbs(output) {
		output = filepath.Join(a.Env.Dir, output)
	}
	if err := newfile.Free(output); err != nil && !c.Force {
		return fmt.Errorf("%w: choose another name with --output, or replace it with --force", err)
	}
	env, err := a.Env.WithDotenv()
	if err != nil {
		return err
	}
	found := append(firstconfig.Keys(env.Lookup), firstconfig.Servers(a.Ctx, a.Local)...)
	for _, f := range found {
		fmt.Fprintf(a.Out, "found %s\n", f)
	}
	plan := firstconfig.NewPlan(found)
	if in := a.In; !c.Yes && terminal(in) {
		plan.Ask(in, a.Out)
	}
	text, warnings, err := plan.Config(env.Lookup)
	if err != nil {
		return fmt.Errorf("the configuration does not pass the check, which is a mistake of hydrallm init; please report it: %w", err)
	}
	for _, w := range warnings {
		fmt.Fprintf(a.Out, "warning: %s\n", w)
	}
	secrets, err := c.secrets(a, &plan, env.Lookup)
	if err != nil {
		return err
	}
	if err := newfile.Write(output, text, configMode, c.Force); err != nil {
		return err
	}
	c.next(a, &plan, secrets)
	return nil
}

// terminal says whether somebody can answer questions. Tests answer them, too.
func terminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return in != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}

// secrets puts new keys of the gateway into .env, behind what is there, unless the environment has them. It gives the names of those that are new.
func (c initCmd) secrets(a *App, plan *firstconfig.Plan, lookup func(string) (string, bool)) ([]string, error) {
	path := filepath.Join(a.Env.Dir, ".env")
	before, err := os.ReadFile(path) //nolint:gosec // the file of the working directory
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading .env: %w", err)
	}
	b := bytes.NewBuffer(before)
	if len(before) > 0 && !bytes.HasSuffix(before, []byte("\n")) {
		b.WriteByte('\n')
	}
	var made []string
	for _, key := range []struct {
		wanted       bool
		name, prefix string
	}{{plan.AdminKey, firstconfig.AdminVariable, ""}, {plan.ClientKeys, firstconfig.ClientVariable, "hk-"}} {
		if v, set := lookup(key.name); !key.wanted || set && strings.TrimSpace(v) != "" {
			continue
		}
		fmt.Fprintf(b, "%s=%s\n", key.name, firstconfig.NewKey(key.prefix))
		made = append(made, key.name)
	}
	if len(made) == 0 {
		return nil, nil
	}
	return made, newfile.Write(path, b.Bytes(), secretMode, err == nil)
}

// next says what was written and prints commands that work.
func (c initCmd) next(a *App, plan *firstconfig.Plan, made []string) {
	fmt.Fprintf(a.Out, "wrote %s: %s, %s of this machine\n", c.Output, phrase.Count(len(plan.Providers), "provider"), phrase.Count(len(plan.Models()), "model"))
	if len(made) > 0 {
		fmt.Fprintf(a.Out, "wrote .env: %s\n", strings.Join(made, ", "))
	}
	if len(plan.Providers) == 0 {
		fmt.Fprintln(a.Out, "Nothing was found: set GEMINI_API_KEY, GROQ_API_KEY, OPENAI_API_KEY or the like, or start Ollama, and run hydrallm init --force. hydrallm demo works without any.")
	}
	start, check := "hydrallm", "hydrallm check"
	if c.Output != "config.yaml" {
		start, check = "CONFIG_PATH="+c.Output+" hydrallm", "hydrallm check "+c.Output
	}
	key := ""
	switch {
	case slices.Contains(made, firstconfig.ClientVariable):
		key = ` -H "Authorization: Bearer $(sed -n 's/^` + firstconfig.ClientVariable + `=//p' .env)"`
	case plan.ClientKeys:
		key = ` -H "Authorization: Bearer $` + firstconfig.ClientVariable + `"`
	}
	model := plan.Default
	fmt.Fprintf(a.Out, "\nNext:\n  %s\n  %s\n  curl -N http://127.0.0.1:%d/v1/chat/completions -H 'Content-Type: application/json'%s \\\n"+
		"    -d '{\"model\": %q, \"stream\": true, \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'\n", check, start, plan.Port, key, model)
}

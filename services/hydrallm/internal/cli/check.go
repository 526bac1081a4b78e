package cli

import (
	"errors"
	"fmt"

	"hydrallm/shared/config"
	"hydrallm/shared/process"
)

type checkCmd struct {
	File   string `arg:"" optional:"" help:"The file; without it the configuration that the gateway would use."`
	Strict bool   `help:"Fail on warnings, too."`
}

// Run lists errors and warnings. It fails when there are errors.
func (c checkCmd) Run(a *App) error {
	env := a.Env
	env.File = c.File
	settings, err := process.LoadFrom(env, process.Overrides{})
	for _, w := range settings.Warnings {
		fmt.Fprintf(a.Out, "warning: %s\n", w)
	}
	invalid, ok := errors.AsType[*config.InvalidError](err)
	switch {
	case ok:
		for _, f := range invalid.Findings {
			fmt.Fprintf(a.Out, "error: %s\n", f)
		}
		return fmt.Errorf("%d errors, %d warnings", len(invalid.Findings), len(settings.Warnings))
	case err != nil:
		return err
	}
	warnings := len(settings.Warnings)
	if hint := settings.EmptyHint(); hint != "" {
		fmt.Fprintf(a.Out, "warning: %s\n", hint)
		warnings++
	}
	if c.Strict && warnings > 0 {
		return fmt.Errorf("%s: 0 errors, %d warnings", settings.Source, warnings)
	}
	_, err = fmt.Fprintf(a.Out, "%s is valid: %d providers, %d upstreams, %d models, %d warnings\n",
		settings.Source, len(settings.Providers), len(settings.Upstreams), len(settings.Models), warnings)
	return err
}

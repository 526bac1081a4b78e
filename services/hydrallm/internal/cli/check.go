package cli

import (
	"errors"
	"fmt"

	"hydrallm/shared/config"
	"hydrallm/shared/process"
)

type checkCmd struct {
	File string `arg:"" optional:"" help:"The file; without it the configuration that the gateway would use."`
}

// Run lists errors and warnings. It fails when there are errors.
func (c checkCmd) Run(a *App) error {
	env := a.Env
	if c.File != "" {
		env = withVariable(env, "CONFIG_PATH", c.File)
	}
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
	_, err = fmt.Fprintf(a.Out, "%s is valid: %d providers, %d upstreams, %d models, %d warnings\n",
		settings.Source, len(settings.Providers), len(settings.Upstreams), len(settings.Models), len(settings.Warnings))
	return err
}

// withVariable gives env with one variable set.
func withVariable(env config.Environment, name, value string) config.Environment {
	lookup := env.Lookup
	env.Lookup = func(asked string) (string, bool) {
		if asked == name {
			return value, true
		}
		return lookup(asked)
	}
	return env
}

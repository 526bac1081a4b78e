package cli

import (
	"errors"
	"fmt"
	"time"

	"hydrallm/services/hydrallm/internal/phrase"
	"hydrallm/shared/certificate"
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
		return errors.New(phrase.Count(len(invalid.Findings), "error") + ", " + phrase.Count(len(settings.Warnings), "warning"))
	case err != nil:
		return err
	}
	warnings := len(settings.Warnings)
	warning, err := checkCertificate(settings.Server.TLS)
	if err != nil {
		fmt.Fprintf(a.Out, "error: %s: server.tls: %v\n", settings.Source, err)
		return errors.New("1 error, " + phrase.Count(warnings, "warning"))
	}
	if warning != "" {
		fmt.Fprintf(a.Out, "warning: %s: server.tls: %s\n", settings.Source, warning)
		warnings++
	}
	if hint := settings.EmptyHint(); hint != "" {
		fmt.Fprintf(a.Out, "warning: %s\n", hint)
		warnings++
	}
	if c.Strict && warnings > 0 {
		return fmt.Errorf("%s: 0 errors, %s", settings.Source, phrase.Count(warnings, "warning"))
	}
	_, err = fmt.Fprintf(a.Out, "%s is valid: %s, %s, %s, %s\n", settings.Source, phrase.Count(len(settings.Providers), "provider"),
		phrase.Count(len(settings.Upstreams), "upstream"), phrase.Count(len(settings.Models), "model"), phrase.Count(warnings, "warning"))
	return err
}

// soon is how long a certificate has to be valid still.
const soon = 14 * 24 * time.Hour

// checkCertificate says what is wrong with the files of a certificate: they keep the gateway from starting. A certificate that ends soon, or has, is a warning.
func checkCertificate(c config.TLS) (warning string, err error) {
	if !c.On() {
		return "", nil
	}
	pair, err := certificate.Files{Cert: c.Cert, Key: c.Key}.Load()
	if err != nil {
		return "", err
	}
	end := pair.Leaf.NotAfter.UTC().Format(time.DateOnly)
	switch left := time.Until(pair.Leaf.NotAfter); {
	case left <= 0:
		return fmt.Sprintf("the certificate in %s has ended on %s: clients refuse it", c.Cert, end), nil
	case left < soon:
		return fmt.Sprintf("the certificate in %s ends on %s", c.Cert, end), nil
	}
	return "", nil
}

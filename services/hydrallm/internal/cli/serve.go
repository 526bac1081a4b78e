package cli

import (
	"log/slog"

	"hydrallm/services/hydrallm/internal/gateway"
	"hydrallm/shared/process"
)

type serveCmd struct {
	Debug bool `help:"Log everything, and open the admin routes when no admin key is set."`
	Port  port `help:"Port to listen on, instead of the configured one." placeholder:"PORT"`
}

// Run serves until the process is told to stop.
func (c serveCmd) Run(a *App) error {
	settings, err := process.LoadFrom(a.Env, process.Overrides{Debug: c.Debug, Port: int(c.Port)})
	if err != nil {
		return err
	}
	return process.Observed(a.Ctx, settings, "hydrallm", a.Out, func(log *slog.Logger) error {
		settings.Report(a.Ctx, log)
		return gateway.Run(a.Ctx, settings, log)
	})
}

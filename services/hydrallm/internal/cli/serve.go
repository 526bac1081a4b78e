package cli

import (
	"fmt"
	"log/slog"

	"hydrallm/services/hydrallm/internal/gateway"
	"hydrallm/shared/config"
	"hydrallm/shared/process"
)

type serveCmd struct {
	Debug bool `help:"Log everything, and open the admin routes when no admin key is set."`
	Port  port `help:"Port to listen on, instead of the configured one." placeholder:"PORT"`
	Demo  bool `name:"or-demo" help:"Run the demo when nothing is configured."`
}

// Run serves until the process is told to stop.
func (c serveCmd) Run(a *App) error {
	settings, err := process.LoadFrom(a.Env, process.Overrides{Debug: c.Debug, Port: int(c.Port)})
	if err != nil {
		return err
	}
	if c.Demo && settings.Source == config.FromEnvironment && settings.Empty() {
		fmt.Fprintln(a.Out, "Nothing is configured, so this is the demo. Set GEMINI_API_KEY, GROQ_API_KEY, OPENAI_API_KEY or the like, or write a config.yaml, "+
			"to run the gateway itself.")
		return demoCmd{Port: c.Port}.Run(a)
	}
	settings.Sockets = process.Sockets()
	return process.Observed(a.Ctx, settings, "hydrallm", a.Out, func(log *slog.Logger) error {
		settings.Report(a.Ctx, log)
		return gateway.Run(a.Ctx, settings, log)
	})
}

package cli

import (
	"strconv"

	"hydrallm/shared/process"
)

type healthcheckCmd struct {
	Port int    `arg:"" optional:"" help:"Port of the server; without it the one that the gateway listens on."`
	Path string `arg:"" optional:"" default:"/readyz" help:"Path that has to answer 200 (${default})."`
}

// Run asks once.
func (c healthcheckCmd) Run(a *App) error {
	if c.Port == 0 {
		settings, err := process.LoadFrom(a.Env, process.Overrides{})
		if err != nil {
			return err
		}
		c.Port = settings.Server.Port
	}
	return process.Healthcheck(a.Ctx, []string{strconv.Itoa(c.Port), c.Path})
}

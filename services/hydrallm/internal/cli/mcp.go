package cli

import "hydrallm/services/enricher"

type mcpCmd struct{}

// Run serves until the process is told to stop.
func (mcpCmd) Run(a *App) error { return enricher.RunMCP(a.Ctx, a.Env, a.Out) }

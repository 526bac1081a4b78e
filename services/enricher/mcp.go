package enricher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"hydrallm/services/enricher/internal/mcpserver"
	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
)

// RunMCP offers the search and the reading of pages as an MCP server until ctx ends. It takes web of the configuration in env, and needs
// no other service. Logs go to out. An error is one that keeps it from starting or from working on.
func RunMCP(ctx context.Context, env config.Environment, out io.Writer) error {
	settings, err := process.LoadFrom(env, process.Overrides{})
	if err != nil {
		return err
	}
	return process.Observed(ctx, settings, "mcp", out, func(log *slog.Logger) error {
		settings.Report(ctx, log)
		return lifecycle.Run(ctx, log, settings.Server.StopLimit(), nil, lifecycle.Named{Name: "the MCP server", Service: newMCP(settings.Web, log)})
	})
}

// mcpRun is what there is of the MCP server between Start and Stop.
type mcpRun struct {
	backend *backend
	server  *mcpserver.Server
}

// newMCP makes the MCP server with what it needs.
func newMCP(web config.Web, log *slog.Logger) *lifecycle.Switch[mcpRun] {
	web.Backend = "inprocess" // it is what another gateway asks as its backend
	begin := func(ctx context.Context, r *mcpRun) (err error) {
		if r.backend, err = startBackend(ctx, nil, &web, process.Version(), log); err != nil {
			return fmt.Errorf("preparing to read pages: %w", err)
		}
		server, err := mcpserver.New(mcpserver.Config{Listen: web.MCPServer.Listen, Token: web.MCPServer.Token.Reveal(), Version: process.Version()},
			mcpserver.Tools{Web: r.backend, MaxChars: web.MaxChars, Deadline: web.Deadline}, log)
		if err != nil {
			return err
		}
		r.server = server
		return server.Start(ctx)
	}
	return lifecycle.NewSwitch(begin, func(ctx context.Context, r *mcpRun) (err error) {
		if r.server != nil {
			err = r.server.Stop(ctx)
		}
		return errors.Join(err, r.backend.stop(ctx))
	})
}

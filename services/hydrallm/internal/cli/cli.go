// Package cli is the command line of the all-in-one binary.
package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"hydrallm/services/hydrallm/internal/movein"
	"hydrallm/shared/config"
	"hydrallm/shared/process"
)

// App is what a command works with.
type App struct {
	Ctx    context.Context //nolint:containedctx // handed to the command that runs; it lives as long as the call
	Env    config.Environment
	In     io.Reader // what the user types; nil for nothing
	Out    io.Writer // logs and results
	ErrOut io.Writer // what keeps a command from working

	Local func(port string) string // where a port of this machine is; nil is 127.0.0.1
}

// commands are the subcommands.
type commands struct {
	Serve   serveCmd   `cmd:"" default:"withargs" help:"Run the gateway (the default)."`
	Check   checkCmd   `cmd:"" help:"Check a configuration file and list every error and warning."`
	Init    initCmd    `cmd:"" help:"Write a first configuration, with the keys and local servers that are found."`
	Import  importCmd  `cmd:"" help:"Turn the configuration of another gateway into one of this."`
	Demo    demoCmd    `cmd:"" help:"Run the gateway with a mock upstream and temporary data, to try it."`
	Doctor  doctorCmd  `cmd:"" help:"Look at the configuration, the providers, the machine and a running gateway, and say what to do."`
	Mock    mockCmd    `cmd:"" help:"Run the mock upstream alone."`
	Intent  intentCmd  `cmd:"" help:"Check which questions are taken for ones that need the web."`
	MCP     mcpCmd     `cmd:"" name:"mcp" help:"Offer the search and the reading of web pages as an MCP server."`
	Backup  backupCmd  `cmd:"" help:"Write a backup of all that the gateway keeps, while it runs or not."`
	Restore restoreCmd `cmd:"" help:"Put a backup back, while the gateway does not run."`
	Version versionCmd `cmd:"" help:"Print the version."`

	Healthcheck healthcheckCmd `cmd:"" help:"Ask the server on a port of this machine whether it is well."`
}

// Run executes the command line and gives the exit code: 0, 1 after an error, 2 for a command line that makes no sense.
func (a *App) Run(args []string) int {
	var c commands
	exited := -1
	parser, err := kong.New(&c, kong.Name("hydrallm"), kong.Description("An OpenAI-compatible gateway for many LLM providers."),
		kong.Writers(a.Out, a.ErrOut), kong.Exit(func(code int) { exited = code }), kong.UsageOnError(),
		kong.Vars{"formats": strings.Join(movein.Formats(), ",")})
	if err != nil {
		fmt.Fprintln(a.ErrOut, err)
		return 1
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // help was asked for
		return exited
	}
	if err != nil {
		fmt.Fprintf(a.ErrOut, "hydrallm: %v\nTry \"hydrallm --help\".\n", err)
		return 2
	}
	if err := command.Run(a); err != nil {
		fmt.Fprintf(a.ErrOut, "hydrallm: %v\n", err)
		return 1
	}
	return 0
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(a *App) error {
	_, err := fmt.Fprintln(a.Out, process.Version())
	return err
}
